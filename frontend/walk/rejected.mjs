// Looks at the rejected rows of a job in a real browser.
//   node walk/rejected.mjs URL CHROMIUM JOB [FOLDER FOR PICTURES]
import { readFile } from 'node:fs/promises';
import { takeWalk } from './walk.mjs';

// The rest is what every walk is given.
const [job] = process.argv.splice(4, 1);

/** 120 rows of which the newest is markup, and then a long one. */
async function rejectedRows(page, walk) {
  await page.goto(`${walk.url}jobs/${job}`);
  await page.getByRole('tab', { name: 'Rejected rows' }).click();
  const panel = page.getByRole('region', { name: 'Rejected rows' });
  const rows = panel.getByRole('table', { name: 'Rejected rows', exact: true }).getByRole('row');
  await rows.filter({ hasText: '<img src=x' }).waitFor();
  walk.expect((await panel.locator('img').count()) === 0, 'a text became a picture');
  await panel.getByRole('button', { name: /^Show all of the text/ }).first().click();
  await rows.filter({ hasText: 'the end of it' }).waitFor();
  const tooWide = await page.evaluate(() =>
    [...document.querySelectorAll('main, main *')]
      .filter((part) => part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== 'visible')
      .map((part) => part.outerHTML.slice(0, 80)),
  );
  walk.expect(tooWide.length === 0, `wider than its place: ${tooWide.join(' ')}`);
  await walk.look(page, 'job-rejected');
  walk.expect((await rows.count()) === 51, `a page has ${(await rows.count()) - 1} rows`);
  await panel.getByRole('button', { name: 'Next page' }).click();
  await panel.getByText('page 2').waitFor();
  await panel.getByRole('combobox', { name: 'Reason' }).selectOption('no_time');
  await rows.filter({ hasText: 'the event time is NULL' }).first().waitFor();
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    panel.getByRole('link', { name: 'Download CSV' }).click(),
  ]);
  const text = await readFile(await file.path(), 'utf8');
  walk.expect(text.split('\r\n').length === 4 && text.includes(",'=1+2,"), `the download is ${text.slice(0, 300)}`);
}

await takeWalk([rejectedRows]);
