// A new join: a mistake, its cure, and the job made of it.
import { SLOW_MS, heading } from '../walk.mjs';

const WRONG =
  'SELECT ONLINE demo_bids.nothing\nFROM demo_bids, demo_auctions\nWHERE demo_bids.auction = demo_auctions.id\nWITHIN 10 SECONDS';
const RIGHT = WRONG.replace('demo_bids.nothing', 'demo_bids.price, demo_auctions.reserve');

export async function newJoin(page, walk) {
  await page.getByRole('link', { name: 'New join', exact: true }).first().click();
  await heading(page, 'New join');
  const editor = page.getByRole('textbox', { name: 'Query' });
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(WRONG);
  await page.getByText('Line 1, column 15: there is no column').waitFor({ timeout: SLOW_MS });
  const underlined = await page.locator('.cm-lintRange-error').first().textContent();
  walk.expect(underlined === 'demo_bids.nothing', `"${underlined}" is underlined`);
  await walk.look(page, 'join-mistake');
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(RIGHT);
  await page.getByRole('radio', { name: 'matrix' }).waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'join');
  await page.getByRole('checkbox', { name: 'Start at once' }).uncheck();
  await page.getByRole('textbox', { name: 'Name' }).fill(`${walk.walked} ${walk.scheme}`);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await heading(page, `${walk.walked} ${walk.scheme}`);
  await page.getByText('The job does not run').waitFor({ timeout: SLOW_MS });
}
