import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Hex, parseTransaction } from 'viem';
import { vaultIdOf } from '../../src/engine/actions/earn-terms.ts';
import type { Evidence } from '../../src/engine/authorization/signed-evidence.ts';
import { connectTo, connectToSocket } from '../../src/keys/signer-connection.ts';
import type { Random } from '../simulation/random.ts';
import { routerCall, tokenCall, vaultCall } from '../support/signer/built-calls.ts';
import {
  type CompromisedServer,
  ofKey,
  type SealedWallet,
  serverOver,
  useOf,
} from '../support/signer/compromised-server.ts';
import { type AskedRequest, newOwner, payloadOf, signedBy, signPayload } from '../support/signer/owner.ts';
import { deckOf, inLanes } from './attack.ts';
import { type FrameCase, frameCases } from './cases.ts';
import { mutate, mutateBytes } from './mutate.ts';
import type { Notes } from './observe.ts';
import { swapContracts, type World } from './world.ts';

const LANES = 2;
const PAUSE_MS = 30;

const owner = newOwner();
const otherOwner = newOwner();
const friend = `0x${'11'.repeat(20)}`;
const thief = `0x${'22'.repeat(20)}`;
const path = '/v1/wallets/wallet/rpc';
const expiryMs = Date.now() + 3_600_000;

const payment: AskedRequest = {
  ...{ path, expiryMs },
  body: {
    ...{ method: 'eth_sendTransaction', caip2: 'eip155:1' },
    params: { transaction: { to: friend, value: '0x1' } },
  },
};
const greeting: AskedRequest = {
  ...{ path, expiryMs },
  body: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
};
const swap: AskedRequest = {
  ...{ path: '/v1/wallets/wallet/swap', expiryMs },
  body: {
    source: { caip2: 'eip155:8453', asset_address: `0x${'e1'.repeat(20)}` },
    destination: { asset_address: 'native', destination_address: friend },
    base_amount: '1000000',
  },
};
const vault = `0x${'33'.repeat(20)}`;
const usdc = '0x833589fcd6edb6e08f4c7c32d4f71b54bda02913';
const vaultPlace = { appId: 'acme', caip2: 'eip155:8453', address: vault };
const vaultId = vaultIdOf(vaultPlace, { address: usdc, decimals: 6 });
const deposit: AskedRequest = {
  ...{ path: '/v1/wallets/wallet/earn/ethereum/deposit', expiryMs },
  body: { vault_id: vaultId, amount: '1000' },
};

const paying = {
  ...{ type: 2, to: friend, value: '0x1', chain_id: 1, nonce: 0, gas_limit: '0x5208' },
  ...{ max_fee_per_gas: '0x3b9aca00', max_priority_fee_per_gas: '0x3b9aca00' },
};
const transaction = (change: object = {}) => ({
  ...{ method: 'eth_signTransaction', params: { transaction: { ...paying, ...change } } },
});

/** A call whose evidence does not cover what it asks for. */
interface ForgedCase {
  readonly subject: string;
  readonly task: object;
  readonly evidence?: Evidence | undefined;
  /** In place of what an honest server presents. */
  readonly use?: (honest: ReturnType<typeof useOf>) => object | undefined;
}

const signed = (request: AskedRequest, by = owner): Evidence => signedBy([by], request);
const honestly = signed(payment);
const onBase = (to: string, data: string) =>
  transaction({ chain_id: 8453, gas_limit: '0x30d40', value: '0x0', to, data });
const swapPath = [`0x${'e1'.repeat(20)}`, swapContracts.wrapped];
function twice(evidence: Evidence): Evidence {
  const requests = evidence.requests.map((each) => ({
    ...each,
    signatures: [...each.signatures, ...each.signatures],
  }));
  return { ...evidence, requests };
}

const strangers = Array.from({ length: 5_000 }, () => signPayload(otherOwner, payloadOf(payment)));

const forgedCases: readonly ForgedCase[] = [
  { subject: 'another receiver', task: transaction({ to: thief }), evidence: honestly },
  { subject: 'another value', task: transaction({ value: '0x2' }), evidence: honestly },
  { subject: 'another chain', task: transaction({ chain_id: 10 }), evidence: honestly },
  { subject: 'added calldata', task: transaction({ data: '0xdeadbeef' }), evidence: honestly },
  { subject: 'a new contract', task: transaction({ to: undefined, data: '0x00' }), evidence: honestly },
  { subject: 'a fee of all', task: transaction({ gas_limit: '0xffffffff' }), evidence: honestly },
  {
    ...{ subject: 'an added delegation', evidence: honestly },
    task: transaction({
      ...{
        type: 4,
        authorization_list: [{ contract: thief, chain_id: 1, nonce: 1, r: '0x1', s: '0x1', y_parity: 0 }],
      },
    }),
  },
  { subject: 'no evidence', task: transaction() },
  { subject: 'no use', task: transaction(), use: () => undefined },
  { subject: 'the evidence of another key', task: transaction(), evidence: signed(payment, otherOwner) },
  {
    subject: 'the evidence of another wallet',
    task: transaction(),
    evidence: signed({ ...payment, path: '/v1/wallets/another/rpc' }),
  },
  {
    subject: 'the evidence of another app',
    task: transaction(),
    evidence: signed({ ...payment, appId: 'globex' }),
  },
  { subject: 'the evidence of a read', task: transaction(), evidence: signed({ ...payment, method: 'GET' }) },
  { subject: 'expired evidence', task: transaction(), evidence: signed({ ...payment, expiryMs: 1 }) },
  { subject: 'the evidence of a message', task: transaction(), evidence: signed(greeting) },
  {
    ...{ subject: 'a message for a payment', evidence: honestly },
    task: { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } },
  },
  {
    ...{ subject: 'another message', evidence: signed(greeting) },
    task: { method: 'personal_sign', params: { message: 'hello!', encoding: 'utf-8' } },
  },
  {
    ...{ subject: 'a hash for a message', evidence: signed(greeting) },
    task: { method: 'secp256k1_sign', params: { hash: `0x${'ab'.repeat(32)}` } },
  },
  {
    ...{ subject: 'the quorum of another key', task: transaction(), evidence: signed(payment, otherOwner) },
    use: (honest) => ({ ...honest, quorums: [ofKey(otherOwner)] }),
  },
  {
    ...{ subject: 'an authority without an owner', task: transaction(), evidence: honestly },
    use: (honest) => ({ ...honest, authority: { owner: null, signers: [], isAutomated: true } }),
  },
  {
    ...{ subject: 'a swap of a token without a name to a thief', evidence: signed(swap) },
    task: onBase(
      swapContracts.router,
      routerCall('swapExactTokensForETH', 1_000_000n, 1n, swapPath, thief, 9_999_999_999n),
    ),
  },
  {
    ...{ subject: 'an approval of more than the deposit', evidence: signed(deposit) },
    task: onBase(usdc, tokenCall('approve', vault, 1_000_000_001n)),
  },
  {
    ...{ subject: 'an approval of another token than the vault takes', evidence: signed(deposit) },
    task: onBase(thief, tokenCall('approve', vault, 1_000_000_000n)),
  },
  {
    ...{ subject: 'an approval for another spender', evidence: signed(deposit) },
    task: onBase(usdc, tokenCall('approve', thief, 1_000_000_000n)),
  },
  {
    ...{ subject: 'a deposit for another account', evidence: signed(deposit) },
    task: onBase(vault, vaultCall('deposit', 1_000_000_000n, thief)),
  },
  {
    ...{ subject: 'a deposit in another vault', evidence: signed(deposit) },
    task: onBase(thief, vaultCall('deposit', 1_000_000_000n, thief)),
  },
  {
    ...{ subject: 'a payment in place of a swap', evidence: signed(swap) },
    task: onBase(`0x${'e1'.repeat(20)}`, tokenCall('transfer', thief, 1_000_000n)),
  },
  {
    ...{ subject: 'an approval of another router', evidence: signed(swap) },
    task: onBase(`0x${'e1'.repeat(20)}`, tokenCall('approve', thief, 1_000_000n)),
  },
  {
    ...{ subject: 'a delegation for a payment', evidence: honestly },
    task: { method: 'eth_sign7702Authorization', params: { contract: thief, chain_id: 1, nonce: 0 } },
  },
  {
    ...{ subject: 'typed data for a payment', evidence: honestly },
    task: {
      method: 'eth_signTypedData_v4',
      params: {
        typed_data: {
          ...{ domain: {}, primary_type: 'A', message: { a: '1' } },
          types: { EIP712Domain: [], A: [{ name: 'a', type: 'uint256' }] },
        },
      },
    },
  },
  {
    ...{ subject: '5,000 signatures of a stranger', task: transaction() },
    evidence: { requests: [{ payload: payloadOf(payment), signatures: strangers }] },
  },
  {
    ...{ subject: 'the signature twice in place of two', task: transaction() },
    evidence: twice(signed(payment, otherOwner)),
  },
];

/** A signer signs a request for three transactions. */
const MAX_PAYMENTS = 3;

/** Attacks the signer with all that a server has: its socket, rows, and what owners have signed. */
export async function compromisedServer(
  world: World,
  { notes, random, signal }: { notes: Notes; random: Random; signal: AbortSignal },
): Promise<void> {
  const uid = process.getuid?.() ?? 0;
  const attach = async () =>
    serverOver(await connectTo(await connectToSocket({ path: world.socket, uid }).stream));
  let server: CompromisedServer = await attach();
  const wallet = await server.walletOf({ owner: ofKey(owner) });
  const [frames, forged] = [deckOf(frameCases, random), deckOf(forgedCases, random)];
  /** Its payments that were signed, by nonce. */
  const paid = new Map<number, Hex>();

  async function ask(each: ForgedCase): Promise<void> {
    const honest = useOf(wallet, each.evidence);
    const use = each.use === undefined ? honest : each.use(honest);
    const isChanged = random.chance(0.4);
    const [task, used] = isChanged ? changed(each.task, use, random) : [each.task, use];
    const answer = await attempt(server, wallet, task, used);
    if (answer === undefined) return;
    if (isChanged && isThePayment(answer)) return;
    notes.fault('something unsigned was signed', `${each.subject}: ${JSON.stringify(answer).slice(0, 400)}`);
  }

  async function replay(): Promise<void> {
    notes.attack('compromised server', 'a payment over many nonces');
    const nonce = random.below(40);
    const answer = await attempt(server, wallet, transaction({ nonce }), useOf(wallet, honestly));
    if (answer === undefined) return;
    paid.set(nonce, transactionIn(answer) ?? '0x');
    if (paid.size > MAX_PAYMENTS)
      notes.fault(
        'something unsigned was signed',
        `one payment for the nonces ${[...paid.keys()].join(', ')}`,
      );
  }

  /** Some keys that decrypt imports begin as a wallet's secret does. */
  async function useImportKey(): Promise<void> {
    notes.attack('compromised server', "the key of an import as a wallet's");
    const purpose = random.chance(0.5) ? 'ethereum' : 'wallet-import-ethereum';
    const binding = { ...wallet.binding, rowId: 'import' };
    const { parts, json } = await server.call('createImportKey', [], { binding });
    const { key } = json as { key: string };
    const sealed = parts.slice(0, 2);
    const asWallet = { key, binding: { ...binding, purpose } };
    const recipient = Buffer.from(owner.publicKey, 'base64').subarray(-65);
    const message = { method: 'personal_sign', params: { message: 'hello', encoding: 'utf-8' } };
    const uses = [
      server.call('exportWalletKey', [...sealed, recipient], { ...asWallet, form: 'private-key' }),
      server.call('signWithWallet', sealed, { ...asWallet, ...message }),
    ];
    const outcomes = await Promise.allSettled(uses);
    if (outcomes.some(({ status }) => status === 'fulfilled'))
      notes.fault('something unsigned was signed', "the key of an import was used as a wallet's");
  }

  await inLanes(LANES, { signal, pauseMs: PAUSE_MS }, async () => {
    const choice = random.fraction();
    if (choice < 0.1) return replay();
    // The environment may have killed the signer.
    if (choice < 0.15) return useImportKey().catch(() => undefined);
    if (choice < 0.55) {
      const { value } = forged.next();
      notes.attack('compromised server', value.subject);
      await ask(value);
    } else {
      const { value } = frames.next();
      notes.attack('compromised server', value.subject);
      await sendFrame(world.socket, value, random);
    }
    // The environment may have killed the signer.
    if (server.hasEnded()) server = await attach().catch(() => server);
  });
  // Otherwise nothing shows that the others were refused for what they are.
  if (paid.size === 0) notes.fault('an attacker does not work', 'no honest payment was signed');
  server.close();
}

/** Undefined when it is refused. */
async function attempt(
  server: CompromisedServer,
  wallet: SealedWallet,
  task: object,
  use: object | undefined,
): Promise<object | undefined> {
  try {
    return (await server.signs(wallet, task, use)) as object;
  } catch {
    return undefined;
  }
}

function changed(task: object, use: object | undefined, random: Random): [object, object | undefined] {
  if (random.chance(0.5)) return [mutate(task, random) as object, use];
  return [task, mutate(use ?? {}, random) as object];
}

const transactionIn = (answer: object): Hex | undefined =>
  (answer as { signed_transaction?: Hex }).signed_transaction;

/** Whether it is what the owner has signed, as another library reads it. */
function isThePayment(answer: object): boolean {
  const text = transactionIn(answer);
  if (text === undefined) return false;
  const { to, value, data, chainId, ...rest } = parseTransaction(text);
  const isPlain = data === undefined && !('authorizationList' in rest);
  return isPlain && to === friend && value === 1n && chainId === 1;
}

const FRAME_MS = 150;

async function sendFrame(socketPath: string, { bytes }: FrameCase, random: Random): Promise<void> {
  const socket = connect({ path: socketPath, allowHalfOpen: true });
  socket.on('error', () => undefined);
  socket.resume();
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const frame = bytes();
  socket.write(random.chance(0.4) ? mutateBytes(frame, random) : frame);
  if (random.chance(0.5)) socket.end();
  await Promise.race([ended, pause(FRAME_MS)]);
  socket.destroy();
}
