"""Measuring Brain, beside what it could be measured against."""
