// How much the first page is, and when it can be used, with nothing kept from before:
//   node walk/first-load.mjs URL CHROMIUM
// Prints bytes over the wire and milliseconds of each load; it fails where the shortest is over the limits, as a busy
// machine only adds to it.
import { chromium } from 'playwright-core';

const LOADS = 5;
const BYTES_MAX = 350_000;
/** Ten times what it takes where nothing else runs: for a slow machine. */
const INTERACTIVE_MS_MAX = 6_000;
/** So long without a long task, and the page has come to rest. */
const QUIET_MS = 1_500;

const [url, executablePath] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

async function load() {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.addInitScript(() => {
    globalThis.busyUntilMs = 0;
    new PerformanceObserver((list) => {
      for (const task of list.getEntries()) globalThis.busyUntilMs = task.startTime + task.duration;
    }).observe({ type: 'longtask', buffered: true });
  });
  const finished = [];
  page.on('requestfinished', (request) => finished.push(request));
  await page.goto(url);
  await page.getByRole('heading', { level: 1 }).waitFor();
  const shownMs = await page.evaluate(() => performance.now());
  await page.waitForTimeout(QUIET_MS);
  const busyUntilMs = await page.evaluate(() => globalThis.busyUntilMs);
  const files = finished.filter((request) => !request.url().includes('/api/'));
  const sizes = await Promise.all(files.map((request) => request.sizes()));
  // It can be used indeed.
  await page.getByRole('link', { name: 'Streams' }).click();
  await page.getByRole('heading', { level: 1, name: 'Streams' }).waitFor();
  await context.close();
  const bytes = sizes.reduce((sum, size) => sum + size.responseBodySize, 0);
  return { bytes, interactiveMs: Math.round(Math.max(shownMs, busyUntilMs)) };
}

const loads = [];
for (let number = 0; number < LOADS; number += 1) loads.push(await load());
await browser.close();
console.log(JSON.stringify(loads));
const bytes = Math.max(...loads.map((one) => one.bytes));
const interactiveMs = Math.min(...loads.map((one) => one.interactiveMs));
if (bytes > BYTES_MAX) console.error(`the first page has ${bytes} bytes, which is over ${BYTES_MAX}`);
if (interactiveMs > INTERACTIVE_MS_MAX) console.error(`it can be used after ${interactiveMs} ms`);
process.exit(bytes > BYTES_MAX || interactiveMs > INTERACTIVE_MS_MAX ? 1 : 0);
