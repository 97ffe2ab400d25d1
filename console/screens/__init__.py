"""The screens, one module each; beside a screen lies the module that turns its model into lines."""
