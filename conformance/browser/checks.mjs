// Runs named checks in a browser. Prints the name of each check that passes. The first failure ends the run and keeps a
// screenshot.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './chromium.mjs';

/** Runs `work` with a browser and `check(name, work)`. With `quiet`, a check also fails on any console message. The
 * environment variable ONLY selects checks by a part of their names. */
export async function checks({ pictures, quiet = true }, work) {
  mkdirSync(pictures, { recursive: true });
  const browser = await Browser.start(process.env.CHROMIUM ?? 'chromium');
  let passed = 0;
  const silent = () => assert.deepEqual(browser.complaints, [], 'nothing on any console, no violation of a policy');
  async function check(name, one) {
    if (process.env.ONLY && !name.includes(process.env.ONLY)) return;
    browser.complaints.length = browser.requests.length = 0;
    await one();
    if (quiet) silent();
    passed += 1;
    console.log(`ok  ${name}`);
  }
  try {
    await work({ browser, check, silent });
    console.log(`${passed} passed; screenshots in ${pictures}`);
  } catch (error) {
    await browser.picture(join(pictures, 'failed.png')).catch(() => {});
    console.error(`failed after ${passed}: ${error.message}\n${browser.complaints.join('\n')}`);
    process.exitCode = 1;
  } finally {
    await browser.stop();
  }
}
