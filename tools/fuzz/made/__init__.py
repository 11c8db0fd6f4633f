"""Files that no alteration of a sound one comes upon: each hostile by design, made in the place of one."""
