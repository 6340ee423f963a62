import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSigner } from '../../../src/compose/open-signer.ts';
import { readServeConfig } from '../../../src/config/config.ts';
import { StartError } from '../../../src/config/start-error.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { startCustos, temporaryFolder, waitFor } from '../../support/run-custos.ts';

// Services of one machine are started at the same time, so the server may be first.

async function settings() {
  const folder = join(temporaryFolder(), 'signer');
  mkdirSync(folder, { mode: 0o700 });
  const { CUSTOS_MASTER_KEY: key, ...env } = (await serveSettings()).env;
  return { key: key!, env: { ...env, CUSTOS_SIGNER_SOCKET: join(folder, 'socket') } };
}

test('`custos serve` waits for a `custos signer` that starts later', async () => {
  const { key, env } = await settings();
  await using stack = new AsyncDisposableStack();
  const server = await startCustos(['serve'], { env });
  stack.defer(async () => void (await server.stop('SIGKILL')));
  const said = (text: string) => server.output().stdout.includes(text);
  await waitFor(() => said('no signer listens yet') || server.process.exitCode !== null);
  const signer = await startCustos(['signer', '--socket', env.CUSTOS_SIGNER_SOCKET], {
    env: { CUSTOS_MASTER_KEY: key },
  });
  stack.defer(async () => void (await signer.stop('SIGKILL')));
  await waitFor(() => said('"msg":"ready"') || server.process.exitCode !== null);
  expect(server.process.exitCode).toBeNull();
});

test('it waits no longer than its limit, and says what it expected', async () => {
  const { env } = await settings();
  const config = { ...readServeConfig({}, env), logLevel: 'silent' } as const;
  const failure = openSigner(config, 300);
  await expect(failure).rejects.toThrow(StartError);
  await expect(failure).rejects.toThrow(
    `expected a signer at \`${env.CUSTOS_SIGNER_SOCKET}\` within 0.3 s, none listened; start \`custos signer\` first`,
  );
});
