"""Publishing to Git, only when somebody asks. So far it knows that no destination can be set up yet."""
