// Signs in and out in a real browser, on a platform that asks for it, and sees to users and keys there.
//   node walk/signing-in.mjs URL CHROMIUM PASSWORD [FOLDER FOR PICTURES]
import { administration } from './steps/admin.mjs';
import { takeWalk } from './walk.mjs';

// The rest is what every walk is given.
const [password] = process.argv.splice(4, 1);

await takeWalk(administration(password));
