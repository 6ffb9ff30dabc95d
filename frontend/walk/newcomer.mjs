// What somebody does in the first minutes: two files of their own, uploaded, registered and joined.
//   node walk/newcomer.mjs URL CHROMIUM FOLDER
// The folder has orders.csv and payments.csv, and gets pictures. It fails on anything that looks like a mistake of theirs.
import { create, newJoin, opening, registerOrders, registerPayments, rejected, rows } from './steps/newcomer.mjs';
import { takeWalk } from './walk.mjs';

await takeWalk([opening, registerOrders, registerPayments, newJoin, create, rows, rejected]);
