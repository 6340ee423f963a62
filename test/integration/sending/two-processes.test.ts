import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import { toHex } from 'viem';
import { expect, test } from 'vitest';
import { type Anvil, startAnvil } from '../../support/anvil.ts';
import { serveSettings } from '../../support/postgres/serve-settings.ts';
import { runCommand, startCustos, waitFor } from '../../support/run-custos.ts';

// Two server processes share one database and send from one wallet concurrently. anvil checks the nonces.

const caip2 = 'eip155:31337';
const receiver = '0x6Fac4D18c912343BF86fa7049364Dd4E424Ab9C0';
const sends = 24;

interface Server extends AsyncDisposable {
  post<Body>(path: string, body: object): Promise<{ status: number; body: Body; text: string }>;
}

/** Two production servers on one database. */
async function twoServers(rpc: string): Promise<readonly [Server, Server]> {
  const { env: settings, ca } = await serveSettings();
  const env = { ...settings, CUSTOS_RPC: `${caip2}=${rpc}` };
  const created = await runCommand(['apps', 'create', '--name', 'Globex', '--json'], { env });
  const app = JSON.parse(created.stdout) as { id: string; secret: string };
  return Promise.all([serve(env, { app, ca }), serve(env, { app, ca })]);
}

async function serve(
  env: Record<string, string>,
  { app, ca }: { app: { id: string; secret: string }; ca: string },
): Promise<Server> {
  const custos = await startCustos(['serve'], { env });
  const ready = (): { url: string } | undefined => {
    const lines = custos.output().stdout.trim().split('\n').filter(Boolean);
    return lines.map((line) => JSON.parse(line)).find(({ msg }) => msg === 'ready');
  };
  await waitFor(() => ready() !== undefined || custos.process.exitCode !== null);
  const url = ready()?.url;
  if (url === undefined) throw new Error(`serve ended: ${(await custos.ended()).stderr}`);
  const agent = new Agent({ connect: { ca } });
  return {
    async post(path, body) {
      const send = () =>
        agent.request({
          origin: url,
          path,
          method: 'POST',
          headers: {
            authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
            'service-app-id': app.id,
            'content-type': 'application/json',
          },
          body: JSON.stringify(body),
        });
      let answer = await send();
      // On a busy machine those at the end of the queue wait for too long: nothing was done, and clients try again.
      for (let again = 0; answer.statusCode === 503 && again < 10; again += 1) {
        await answer.body.dump();
        await pause(1000 * Number(answer.headers['retry-after']));
        answer = await send();
      }
      const text = await answer.body.text();
      return { status: answer.statusCode, text, body: JSON.parse(text) };
    },
    async [Symbol.asyncDispose]() {
      await custos.stop();
      await agent.destroy();
    },
  };
}

interface Sent {
  readonly data: { hash: string; transaction_request: { nonce: number } };
}

async function receipts(anvil: Anvil, hashes: readonly string[]): Promise<string[]> {
  const found = await Promise.all(hashes.map((hash) => anvil.ask('eth_getTransactionReceipt', hash)));
  return found.map((receipt) => (receipt as { status: string } | null)?.status ?? 'none');
}

test(`${sends} concurrent sends through two processes use different nonces, and all are mined`, async () => {
  await using anvil = await startAnvil(31337);
  const servers = await twoServers(anvil.url);
  await using _first = servers[0];
  await using _second = servers[1];
  const { body: wallet } = await servers[0].post<{ id: string; address: string }>('/v1/wallets', {
    chain_type: 'ethereum',
  });
  await anvil.ask('anvil_setBalance', wallet.address, toHex(10n ** 20n));
  const answers = await Promise.all(
    Array.from({ length: sends }, (_, value) =>
      servers[value % 2]!.post<Sent>(`/v1/wallets/${wallet.id}/rpc`, {
        method: 'eth_sendTransaction',
        caip2,
        params: { transaction: { to: receiver, value: value + 1 } },
      }),
    ),
  );
  expect(answers.map(({ status, text }) => (status === 200 ? status : text))).toEqual(Array(sends).fill(200));
  const nonces = answers.map(({ body }) => body.data.transaction_request.nonce);
  expect(nonces.sort((a, b) => a - b)).toEqual([...Array(sends).keys()]);
  await anvil.ask('evm_mine');
  expect(
    await receipts(
      anvil,
      answers.map(({ body }) => body.data.hash),
    ),
  ).toEqual(Array(sends).fill('0x1'));
  expect(Number(await anvil.ask('eth_getTransactionCount', wallet.address, 'latest'))).toBe(sends);
  expect(Number(await anvil.ask('eth_getBalance', receiver, 'latest'))).toBe((sends * (sends + 1)) / 2);
}, 120_000);
