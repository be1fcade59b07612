// A browser and the checks that are done in it: each is named when it passed, the first that fails ends all, and a picture
// of what was on the screen then is kept.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Browser } from './chromium.mjs';

/** Runs `work` with a browser and `check(name, work)`. Where `quiet` is true, a check also fails when any console says
 * something. ONLY in the environment names a part of the names of the checks to do. */
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
    console.log(`${passed} passed; the pictures are in ${pictures}`);
  } catch (error) {
    await browser.picture(join(pictures, 'failed.png')).catch(() => {});
    console.error(`failed after ${passed}: ${error.message}\n${browser.complaints.join('\n')}`);
    process.exitCode = 1;
  } finally {
    await browser.stop();
  }
}
