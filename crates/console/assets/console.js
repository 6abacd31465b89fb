// Live updates, keyboard, time slider and copy buttons. Every page works without this file, except live updates.
"use strict";
