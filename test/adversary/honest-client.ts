import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';
import { type Hex, recoverMessageAddress, toHex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { newOwner, type Owner, payloadOf, signPayload } from '../support/signer/owner.ts';
import type { HonestCall } from './judge.ts';
import type { Notes } from './observe.ts';
import type { App, World } from './world.ts';

// A client that works at a steady small rate while others attack, and checks each answer without the server's code.

interface Wallet {
  readonly id: string;
  readonly address: Hex;
  readonly owner_id: string;
}

interface Payment {
  readonly to: Hex;
  readonly walletId: string;
  /** Of the action; undefined if the transfer was not acknowledged. */
  readonly actionId: string | undefined;
}

export interface HonestClient {
  /** What other tenants must not see, and do not send. */
  readonly marks: readonly string[];
  readonly wallet: Wallet;
  /** The owner of the wallet. */
  readonly quorum: string;
  /** Works until the signal. */
  work(phase: { readonly isAttacked: boolean; readonly signal: AbortSignal }): Promise<void>;
  /** After the run: looks for everything that was acknowledged. */
  checkKept(): Promise<void>;
  close(): Promise<void>;
}

interface Request {
  readonly kind: HonestCall['kind'];
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body?: object;
  readonly isSigned?: boolean;
}

interface Answered<Body> {
  readonly status: number;
  readonly body: Body;
}

const ROUND_MS = 120;
const AMOUNT = 1_000_000_000_000n;
/** How long a request is repeated. */
const PATIENCE_MS = 30_000;
const EXPIRY_MS = 120_000;
/** Whatever the server does, an answer takes less. */
const ANSWER_MS = 20_000;

export async function startHonestClient(world: World, notes: Notes): Promise<HonestClient> {
  const { origin, honest: app } = world;
  const agent = new Agent({ connect: { ca: world.ca }, connections: 4, headersTimeout: ANSWER_MS });
  const owner = newOwner();
  const wallets: Wallet[] = [];
  const payments: Payment[] = [];
  const marks: string[] = [];
  let isAttacked = false;
  let requests = 0;

  /** Repeats the same bytes until they are answered. */
  async function ask<Body>({ kind, ...request }: Request): Promise<Answered<Body>> {
    requests += 1;
    const { method, path, body } = request;
    const headers = headersOf(app, owner, request, `honest-${requests}`);
    const fromMs = performance.now();
    const refusals: HonestCall['refusals'][number][] = [];
    for (;;) {
      const attemptMs = performance.now();
      const answer = await agent
        .request({ origin, path, method, headers, body: body === undefined ? null : JSON.stringify(body) })
        .then(async (got) => ({ ...got, text: await got.body.text() }))
        .catch((error: unknown) => ({ statusCode: 0, headers: {}, text: String(error) }));
      const untilMs = performance.now();
      const [status, { text }] = [answer.statusCode, answer];
      const isRepeatable = status === 0 || (status === 503 && 'retry-after' in answer.headers);
      const isLate = untilMs - fromMs > PATIENCE_MS;
      if (status !== 0 && status < 500) {
        notes.call({ kind, isAttacked, fromMs, untilMs, refusals, status, text: briefly(answer) });
        return { status, body: JSON.parse(text) as Body };
      }
      refusals.push({ fromMs: attemptMs, untilMs, text: `${status} ${text.slice(0, 300)}`, isRepeatable });
      if (!isRepeatable || isLate) {
        notes.call({ kind, isAttacked, fromMs, untilMs, refusals, status: status || 503, text: 'given up' });
        return { status, body: {} as Body };
      }
      await pause(status === 503 ? 1_000 : 200);
    }
  }

  async function create(): Promise<Wallet | undefined> {
    const made = await ask<Wallet>({
      ...{ kind: 'create', method: 'POST', path: '/v1/wallets' },
      body: { chain_type: 'ethereum', owner: { public_key: owner.publicKey } },
    });
    if (made.status !== 200) return undefined;
    wallets.push(made.body);
    marks.push(made.body.address);
    return made.body;
  }

  async function sign({ id, address }: Wallet): Promise<void> {
    const message = `honest message ${requests}`;
    const signed = await ask<{ data: { signature: Hex } }>({
      ...{ kind: 'sign', method: 'POST', path: `/v1/wallets/${id}/rpc`, isSigned: true },
      body: { method: 'personal_sign', params: { message, encoding: 'utf-8' } },
    });
    if (signed.status !== 200) return;
    const by = await recoverMessageAddress({ message, signature: signed.body.data.signature });
    if (by !== address) notes.fault('a wrong signature', `expected one of ${address}, got one of ${by}`);
  }

  async function read({ id, address }: Wallet): Promise<void> {
    const found = await ask<Wallet>({ kind: 'read', method: 'GET', path: `/v1/wallets/${id}` });
    if (found.status === 200 && found.body.address !== address)
      notes.fault('an acknowledged change is missing', `wallet ${id} has the address ${found.body.address}`);
  }

  async function transfer({ id }: Wallet): Promise<void> {
    const to = privateKeyToAddress(generatePrivateKey());
    const sent = await ask<{ id: string }>({
      ...{ kind: 'transfer', method: 'POST', path: `/v1/wallets/${id}/transfer`, isSigned: true },
      body: { source: { asset: 'eth', chain: 'base', amount: '0.000001' }, destination: { address: to } },
    });
    payments.push({ to, walletId: id, actionId: sent.status === 200 ? sent.body.id : undefined });
  }

  const first = await create();
  if (first === undefined) throw new Error('the honest client cannot create a wallet');
  await world.anvil.ask('anvil_setBalance', first.address, toHex(10n ** 20n));
  return {
    ...{ marks, wallet: first, quorum: first.owner_id },
    async work(phase) {
      isAttacked = phase.isAttacked;
      for (let round = 0; !phase.signal.aborted; round += 1) {
        const wallet = wallets[round % wallets.length]!;
        if (round % 8 === 1) await create();
        else if (round % 8 === 4) await transfer(first);
        else if (round % 2 === 0) await sign(wallet);
        else await read(wallet);
        await pause(ROUND_MS);
      }
    },
    async checkKept() {
      isAttacked = false;
      await checkWallets(ask, wallets, notes);
      for (const payment of payments) await checkPayment(payment, { ask, world, notes });
    },
    close: () => agent.destroy(),
  };
}

function briefly({ headers, text }: { headers: object; text: string }): string {
  const limit = (headers as Record<string, unknown>).ratelimit;
  return `${text.slice(0, 300)}${limit === undefined ? '' : ` ratelimit: ${limit}`}`;
}

function headersOf(
  app: App,
  owner: Owner,
  { method, path, body, isSigned = false }: Omit<Request, 'kind'>,
  idempotencyKey: string,
): Record<string, string> {
  const expiryMs = Date.now() + EXPIRY_MS;
  const signature = (): string =>
    signPayload(owner, payloadOf({ path, body: body!, appId: app.id, expiryMs, idempotencyKey }));
  return {
    authorization: `Basic ${Buffer.from(`${app.id}:${app.secret}`).toString('base64')}`,
    'service-app-id': app.id,
    'service-request-expiry': String(expiryMs),
    ...(method === 'POST'
      ? { 'content-type': 'application/json', 'service-idempotency-key': idempotencyKey }
      : {}),
    ...(isSigned ? { 'service-authorization-signature': signature() } : {}),
  };
}

type Ask = <Body>(request: Request) => Promise<Answered<Body>>;

async function checkWallets(ask: Ask, wallets: readonly Wallet[], notes: Notes): Promise<void> {
  const listed = new Map<string, string>();
  for (let cursor = ''; ; ) {
    const path = `/v1/wallets?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`;
    const { body } = await ask<{ data: Wallet[]; next_cursor?: string | null }>({
      ...{ kind: 'read', method: 'GET', path },
    });
    for (const { id, address } of body.data ?? []) listed.set(id, address);
    if (body.next_cursor == null) break;
    cursor = body.next_cursor;
  }
  for (const { id, address } of wallets) {
    if (listed.get(id) !== address)
      notes.fault('an acknowledged change is missing', `wallet ${id} of ${address} is not listed`);
  }
}

const SETTLE_MS = 20_000;

/** What was acknowledged is paid once and never ends as failed; nothing is paid twice. */
async function checkPayment(
  { to, walletId, actionId }: Payment,
  { ask, world, notes }: { ask: Ask; world: World; notes: Notes },
): Promise<void> {
  const paid = async (): Promise<bigint> =>
    BigInt((await world.anvil.ask('eth_getBalance', to, 'latest')) as string);
  const untilMs = performance.now() + SETTLE_MS;
  while (actionId !== undefined && (await paid()) < AMOUNT && performance.now() < untilMs) await pause(200);
  const amount = await paid();
  const isRight = amount === AMOUNT || (amount === 0n && actionId === undefined);
  if (!isRight) notes.fault('a wrong payment', `${to} was paid ${amount} wei, expected ${AMOUNT} once`);
  if (actionId === undefined) return;
  const path = `/v1/wallets/${walletId}/actions/${actionId}`;
  const { status, body } = await ask<{ status: string }>({ kind: 'read', method: 'GET', path });
  if (status !== 200)
    notes.fault('an acknowledged change is missing', `action ${actionId}: ${status} ${JSON.stringify(body)}`);
  else if (!['pending', 'succeeded'].includes(body.status))
    notes.fault('a wrong payment', `${to} was paid, but the action ${actionId} is ${body.status}`);
}
