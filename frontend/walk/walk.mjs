// A browser that looks closely: what it finds wrong is collected, and told at the end. It acts in the light theme and
// looks at everything in both.
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export const SLOW_MS = 90_000;
export const SPARK_MS = 300_000;
/** A page that has failed may say nothing at all. */
const SAID_MS = 2_000;
const WIDE = { width: 1360, height: 900 };
/** What is left of it at 200 %. */
const ZOOMED = { width: 680, height: 450 };
const ACTS_IN = 'light';
/** By theme, what axe looks at: all that is not colour is the same in both. */
const LOOKS = { dark: { runOnly: { type: 'rule', values: ['color-contrast', 'link-in-text-block'] } }, [ACTS_IN]: {} };

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** What a walk knows while it goes: where, in which theme, and what was wrong so far. */
export class Walk {
  findings = [];
  /** What was answered where a request was refused; printed with the findings. */
  problems = [];
  /** Parts of the addresses of what was deleted: a poll that is on its way then finds nothing. */
  gone = [];
  scheme = ACTS_IN;

  constructor(url, pictures) {
    this.url = url;
    this.pictures = pictures;
    /** Another name each time: a platform may be walked again. */
    this.walked = `walked ${Date.now().toString(36)}`;
  }

  expect(holds, what) {
    if (!holds) this.findings.push(`${this.scheme}: ${what}`);
  }

  listen(page) {
    const isGone = (url) => this.gone.some((part) => url.includes(part));
    page.on('console', (message) =>
      this.expect(isGone(message.location().url), `console: ${message.type()}: ${message.text()}`),
    );
    page.on('pageerror', (error) => this.expect(false, error.stack));
    page.on('response', (response) => {
      const [status, url] = [response.status(), response.url()];
      const isExpected = status < 400 || (status === 404 && isGone(url));
      this.expect(isExpected, `${status} ${url}`);
      if (!isExpected) response.text().then((text) => this.problems.push(`${url}: ${text}`), () => undefined);
    });
    let sockets = 0;
    page.on('websocket', (socket) => {
      sockets += 1;
      this.expect(sockets === 1, 'there is more than one websocket');
      socket.on('close', () => (sockets -= 1));
    });
  }

  /** With axe and for a picture, in both themes, and at 200 %. */
  async look(page, name) {
    await page.evaluate(axe);
    for (const [scheme, what] of Object.entries(LOOKS)) {
      await this.turn(page, scheme);
      const { violations } = await page.evaluate((looked) => globalThis.axe.run(looked), what);
      for (const { id, help, nodes } of violations) {
        const where = nodes.map(({ html, any, all }) => `${html} ${[...any, ...all][0]?.message ?? ''}`).slice(0, 3);
        this.expect(false, `axe on ${name}: ${id}: ${help}: ${where.join(' ')}`);
      }
      await this.picture(page, name);
    }
    for (const [what, where] of Object.entries(await page.evaluate(cutTables)))
      this.expect(where.length === 0, `${name}: ${what}: ${where.slice(0, 3).join('; ')}`);
    await page.setViewportSize(ZOOMED);
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    this.expect(tooWide <= 0, `${name} is ${tooWide} pixels too wide at 200 %`);
    await page.setViewportSize(WIDE);
  }

  /** What the system asks for is another theme; the page follows. */
  async turn(page, scheme) {
    this.scheme = scheme;
    await page.emulateMedia({ colorScheme: scheme });
    await page.waitForFunction((asked) => document.documentElement.dataset.mantineColorScheme === asked, scheme);
    // A colour on its way to another one has the contrast of neither.
    await page.evaluate(() => {
      const fading = document.getAnimations().filter((animation) => animation instanceof CSSTransition);
      return Promise.allSettled(fading.map((animation) => animation.finished));
    });
  }

  async picture(page, name) {
    if (this.pictures) await page.screenshot({ path: join(this.pictures, `${name}-${this.scheme}.png`) });
  }
}

/** Tables that can only be read by scrolling sideways, and times in them that are cut off. Runs in the page. */
function cutTables() {
  const isWider = (element) => element.scrollWidth > element.clientWidth + 1;
  const scrolls = (element) => /auto|scroll/.test(getComputedStyle(element).overflowX);
  const around = (element) => (element === null ? [] : [element, ...around(element.parentElement)]);
  const tables = [...document.querySelectorAll('table')].filter((table) =>
    around(table.parentElement).some((one) => scrolls(one) && isWider(one)),
  );
  const times = [...document.querySelectorAll('td[data-kind="time"], td time')].filter(isWider);
  return {
    'a table scrolls sideways': tables.map((table) => table.textContent.slice(0, 60)),
    'a time is cut off': times.map((time) => time.textContent),
  };
}

/** Take these steps, `(page, walk)` each; the process ends with what was found. */
export async function takeWalk(steps) {
  const [url, executablePath, pictures] = process.argv.slice(2);
  const walk = new Walk(url, pictures);
  if (pictures) await mkdir(pictures, { recursive: true });
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  let atStep = '';
  try {
    const context = await browser.newContext({
      colorScheme: walk.scheme,
      viewport: WIDE,
      reducedMotion: 'reduce',
      timezoneId: 'UTC',
    });
    const page = await context.newPage();
    page.setDefaultTimeout(SLOW_MS);
    walk.listen(page);
    for (const step of steps) {
      atStep = step.name;
      const begunMs = performance.now();
      await step(page, walk).catch(async (failure) => {
        await walk.picture(page, `failed-${atStep}`);
        const said = await page.getByRole('main').innerText({ timeout: SAID_MS }).catch(String);
        walk.problems.push(`what ${page.url()} said:\n${said}`);
        throw failure;
      });
      console.log(`${atStep}: ${((performance.now() - begunMs) / 1e3).toFixed(1)} s`);
    }
  } catch (failure) {
    walk.expect(false, `${atStep}: ${failure.message}`);
  } finally {
    await browser.close();
  }
  const said = walk.findings.length === 0 ? [] : walk.problems;
  for (const line of [...walk.findings, ...said]) console.error(line);
  console.log(walk.findings.length === 0 ? 'nothing is wrong' : `${walk.findings.length} findings`);
  process.exit(walk.findings.length === 0 ? 0 : 1);
}

export const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor({ timeout: SLOW_MS });
export const region = (page, name) => page.getByRole('region', { name, exact: true });

/** Something that the platform is to refuse, which browsers write a line about. */
export async function refused(page, walk, status, act) {
  const before = walk.findings.length;
  await act();
  await page.waitForTimeout(300);
  const found = walk.findings.splice(before);
  const others = found.filter((text) => !text.includes(`status of ${status}`) && !text.includes(`: ${status} http`));
  walk.findings.push(...others);
  walk.expect(others.length < found.length, `nothing was refused with ${status}`);
}
