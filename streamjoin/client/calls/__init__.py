"""What the API can be asked, one conversation each; `client` runs them.

Every conversation gets the client's patience first. Names of things are ids or names; both are taken.
"""
