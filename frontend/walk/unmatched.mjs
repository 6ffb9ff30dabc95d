// Rows without a match in a real browser: the template, the words of its plan, its preview, and the figures of a job.
//   node walk/unmatched.mjs URL CHROMIUM JOB [FOLDER FOR PICTURES]
import { SLOW_MS, heading, takeWalk } from './walk.mjs';

// The rest is what every walk is given.
const [job] = process.argv.splice(4, 1);

async function typed(page, walk) {
  await page.goto(walk.url);
  await page.getByRole('link', { name: 'New join', exact: true }).first().click();
  await heading(page, 'New join');
  const box = page.getByRole('textbox', { name: 'Query' });
  await box.click();
  await page.keyboard.type('SELECT ONLINE orders.id FROM orders LEFT AN', { delay: 20 });
  // On a busy machine what the page learns meanwhile may close the list that opens by itself.
  await page.keyboard.press('Control+Space');
  await page.getByRole('option', { name: 'ANTI', exact: true }).waitFor({ timeout: SLOW_MS });
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
}

async function fromTheTemplate(page, walk) {
  await page.getByRole('button', { name: 'Without a match' }).click();
  await page.getByText(/^orders LEFT ANTI JOIN payments: an unmatched row comes out once/).waitFor({ timeout: SLOW_MS });
  const rows = page.getByRole('region', { name: 'Rows of the preview' }).locator('tbody tr');
  await rows.first().waitFor({ timeout: SLOW_MS });
  const found = await rows.allTextContents();
  walk.expect(found.length === 2 && found.every((row) => /cup|pot/.test(row)), `preview: ${found.join('; ')}`);
  await page.getByText(/choose biclique, matrix or splitjoin/).first().waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'join-unmatched');
}

async function itsJob(page, walk) {
  await page.goto(`${walk.url}jobs/${job}`);
  const told = page.getByText('Rows that wait', { exact: true }).locator('..');
  await told.waitFor({ timeout: SLOW_MS });
  const text = await told.textContent();
  walk.expect(
    text === 'Rows that wait40120 given as unmatched, 2 too late after they were final in the last 15 min',
    `job: ${text}`,
  );
  await walk.look(page, 'job-unmatched');
}

await takeWalk([typed, fromTheTemplate, itsJob]);
