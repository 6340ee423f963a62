import { expect, test } from 'vitest';
import type { Log } from '../../../src/ports/runtime.ts';
import { control, refusal } from '../../support/call.ts';
import { startSandbox } from '../../support/sandbox.ts';

test('a refusal is logged with its code, and what reads the control plane only for debugging', async () => {
  const lines: Record<string, unknown>[] = [];
  const at = (level: string) => (fields: object) => void lines.push({ level, ...fields });
  const log: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  await using sandbox = await startSandbox({ log });
  await refusal(sandbox, 'getWallet', { path: { wallet_id: 'absent' } });
  await refusal(sandbox, 'createWallet', { body: { chain_tipe: 'ethereum' } });
  await control(sandbox, 'GET', '/_sandbox/events?wait_ms=1');
  await control(sandbox, 'GET', '/_sandbox/events?wait_ms=no');
  await control(sandbox, 'GET', '/_sandbox/events');
  const logged = lines.filter(({ operation }) => operation !== undefined);
  expect(logged.map(({ level, operation, status, code }) => [level, operation, status, code])).toEqual([
    ['info', 'getWallet', 404, 'not_found'],
    ['info', 'createWallet', 400, 'invalid_data'],
    ['debug', 'listEvents', 200, undefined],
    ['info', 'listEvents', 400, 'invalid_data'],
    ['debug', 'listEvents', 200, undefined],
  ]);
});
