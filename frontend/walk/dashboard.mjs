// Walks through the dashboard of a running platform in a real browser, looking at everything in both themes.
//   node walk/dashboard.mjs URL CHROMIUM [FOLDER FOR PICTURES]
// It fails on anything in the console, any failed request, any finding of axe, and anything that does not appear.
import { compare, compareNothing, sortOperators, turnKnobs } from './steps/compare.mjs';
import {
  ask,
  askPages,
  changeJob,
  costlyChange,
  deleteJob,
  job,
  logs,
  queriesBeside,
  revisions,
  stopJob,
} from './steps/job.mjs';
import { chooseFiles } from './steps/files.mjs';
import { newJoin } from './steps/join.mjs';
import { openDemo, overview, strayAddresses, switchTheme } from './steps/overview.mjs';
import { askAgain, forgetQueries, keepCopy, keepQuery } from './steps/queries.mjs';
import { deleteStreams, editStream, lists, pushRows, registerStream } from './steps/streams.mjs';
import { takeWalk } from './walk.mjs';

await takeWalk([
  overview,
  openDemo,
  job,
  askPages,
  ask,
  logs,
  costlyChange,
  compare,
  sortOperators,
  turnKnobs,
  compareNothing,
  keepQuery,
  askAgain,
  keepCopy,
  forgetQueries,
  stopJob,
  lists,
  chooseFiles,
  registerStream,
  editStream,
  pushRows,
  deleteStreams,
  newJoin,
  changeJob,
  revisions,
  queriesBeside,
  deleteJob,
  strayAddresses,
  switchTheme,
]);
