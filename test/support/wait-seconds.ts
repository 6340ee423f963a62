import { recordEvents } from '../ledger/record-events.ts';
import type { TestSandbox } from './sandbox.ts';

/** After a wait of this length, old events are deleted, so their payloads are recorded before. */
const DAY_SECONDS = 86_400;

/** Advances the clock, mines the due blocks and runs the due jobs. */
export async function waitSeconds(sandbox: TestSandbox, seconds: number): Promise<void> {
  if (seconds >= DAY_SECONDS) await recordEvents(sandbox.database);
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
