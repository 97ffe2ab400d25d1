"""Where raw data come from: Kaggle, others who publish them, or a folder or zip that is given."""
