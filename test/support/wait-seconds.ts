import type { TestSandbox } from './sandbox.ts';

/** Advances the clock, mines the due blocks and runs the due jobs. */
export async function waitSeconds(sandbox: TestSandbox, seconds: number): Promise<void> {
  const answer = await sandbox.dispatcher.request({
    origin: sandbox.baseUrl,
    path: '/_sandbox/clock',
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ now_ms: sandbox.clock.now() + seconds * 1000, frozen: true }),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(text);
}
