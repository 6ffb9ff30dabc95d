// A join of three streams in a real browser: its plan is a tree before it is created, and its rows are previewed.
//   node walk/stages.mjs URL CHROMIUM JOB [FOLDER FOR PICTURES]
import { SLOW_MS, heading, takeWalk } from './walk.mjs';

// The rest is what every walk is given.
const [job] = process.argv.splice(4, 1);

const QUERY =
  'SELECT ONLINE auctions.id, bids.price, people.name\nFROM auctions JOIN bids ON auctions.id = bids.auction\nJOIN people ON bids.bidder = people.id\nWITHIN 10 SECONDS';
const WORDS = 'Stage 1 joins auctions with bids; stage 2 joins stage 1 with people and gives the results.';
const OTHER_WAY = '(auctions, (bids, people))';
const OTHER_WORDS = 'Stage 1 joins bids with people; stage 2 joins auctions with stage 1 and gives the results.';
const NARROW = { width: 390, height: 844 };

async function tree(page, walk, name) {
  await page.getByText(WORDS).waitFor({ timeout: SLOW_MS });
  const drawn = page.getByRole('region', { name: 'The plan as a tree of stages' });
  walk.expect((await drawn.getByRole('listitem').count()) === 4, `${name}: not two inputs for each of two stages`);
  await drawn.scrollIntoViewIfNeeded();
  await walk.look(page, name);
  const wide = page.viewportSize();
  await page.setViewportSize(NARROW);
  await drawn.scrollIntoViewIfNeeded();
  const tooWide = await drawn.evaluate((part) => part.scrollWidth > part.clientWidth);
  walk.expect(!tooWide, `${name}: the tree is wider than a narrow page`);
  await walk.picture(page, `${name}-narrow`);
  await page.setViewportSize(wide);
}

async function threeStreams(page, walk) {
  await page.goto(walk.url);
  await page.getByRole('link', { name: 'New join', exact: true }).first().click();
  await heading(page, 'New join');
  await page.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.insertText(QUERY);
  await page.getByRole('region', { name: 'Rows of the preview' }).locator('tbody tr').first().waitFor({ timeout: SLOW_MS });
  await tree(page, walk, 'join-stages');
  await page.getByRole('button', { name: `Take this way: ${OTHER_WAY}`, exact: true }).click();
  await page.getByText(OTHER_WORDS).waitFor({ timeout: SLOW_MS });
  // And back to what auto chooses.
  await page.getByRole('radio', { name: 'auto', exact: true }).check();
  await page.getByText(WORDS).waitFor({ timeout: SLOW_MS });
}

async function itsJob(page, walk) {
  await page.goto(`${walk.url}jobs/${job}`);
  await tree(page, walk, 'job-stages');
  await page.getByRole('region', { name: 'The plan as a tree of stages' }).getByText('45/s').waitFor({ timeout: SLOW_MS });
  await page.getByText(`Another order of joins has less work by now: ${OTHER_WAY}`).waitFor({ timeout: SLOW_MS });
  await page.getByRole('button', { name: 'Change to this order' }).click();
  await page.getByText('The job begins anew').waitFor({ timeout: SLOW_MS });
  const trees = await page.getByRole('textbox', { name: 'tree' }).first().inputValue();
  walk.expect(trees === '[auctions, [bids, people]]', `the change has the tree ${trees}`);
}

await takeWalk([threeStreams, itsJob]);
