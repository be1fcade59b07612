// Runs `docent serve` as a process that can be stopped and restarted, and reads the addresses it prints.
import { spawn, spawnSync } from 'node:child_process';

/** The timeout of any step. */
const PATIENCE = 60_000;

export class Server {
  constructor(docent, folder, environment) {
    Object.assign(this, { docent, folder, environment: { ...process.env, ...environment } });
  }

  /** Starts the server at `listen` and waits until its documents are indexed. */
  async start(listen, ...flags) {
    this.said = '';
    this.child = spawn(this.docent, ['serve', this.folder, '--listen', listen, ...flags], { env: this.environment, stdio: ['ignore', 'ignore', 'pipe'] });
    this.child.stderr.on('data', (data) => { this.said += data; });
    this.base = `http://${listen}`;
    const end = Date.now() + PATIENCE;
    for (;;) {
      if (this.child.exitCode !== null) throw new Error(`docent ended: ${this.said}`);
      if (await fetch(`${this.base}/readyz`).then((answer) => answer.ok, () => false)) return;
      if (Date.now() > end) throw new Error(`docent does not answer: ${this.said}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Stops the server, gracefully unless told otherwise. */
  async stop(signal = 'SIGTERM') {
    if (!this.child || this.child.exitCode !== null) return;
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill(signal);
    await gone;
  }

  /** Runs a docent command until it exits. */
  run(args, input = '') {
    const done = spawnSync(this.docent, args, { env: this.environment, input, encoding: 'utf8' });
    return { status: done.status, out: done.stdout, said: done.stderr };
  }
}
