import { bytesToBase58, bytesToBase64 } from '../../engine/crypto/encoding.ts';
import { decodeSolanaTransaction } from '../../engine/signing/solana/wire.ts';
import type { Simulation, SolanaChain } from '../../ports/chains.ts';
import type { Log } from '../../ports/runtime.ts';
import { NodeError, readInteger, readList, readRecord, readText, refuseAnswer } from './endpoint.ts';
import {
  allEqual,
  makeNodes,
  type Nodes,
  type ObserveDisagreement,
  type ObserveNode,
  type Read,
  WrongChainError,
} from './nodes.ts';
import { classifyFailure, classifyRefusal, isAlreadyKnown, solanaStatusOf } from './solana-status.ts';
import { type SolanaTransfersOptions, solanaTransfersAfter } from './solana-transfers.ts';

// The commitment `confirmed`: a supermajority of the stake has voted for the block. It is fast, and such blocks are
// practically never rolled back.
const COMMITMENT = { commitment: 'confirmed' } as const;
const BASE64 = { encoding: 'base64', ...COMMITMENT } as const;

interface SolanaOptions extends Pick<SolanaTransfersOptions, 'namedTokens'> {
  readonly caip2: string;
  readonly urls: readonly string[];
  readonly log: Log;
  /** With 1, a deposit counts once it is confirmed; with any other number, once it is finalized. */
  readonly confirmations: bigint;
  readonly compareAgainMs?: number | undefined;
  readonly observe?: ObserveNode | undefined;
  readonly observeDisagreement?: ObserveDisagreement | undefined;
}

/** Connects to a Solana chain through JSON-RPC. */
export function connectSolana(options: SolanaOptions): SolanaChain {
  const { caip2, log, confirmations, namedTokens } = options;
  const reference = caip2.slice('solana:'.length);
  const nodes = makeNodes({
    ...options,
    async checkChain(ask) {
      // According to CAIP-30, the reference is the first 32 characters of the genesis hash.
      const found = readText('getGenesisHash', await ask('getGenesisHash')).slice(0, 32);
      if (found !== reference) throw new WrongChainError(caip2, `solana:${found}`);
    },
  });
  return {
    kind: 'solana',
    caip2,
    balances: (address, tokens) => Promise.all(tokens.map((token) => balanceOf(nodes, address, token))),
    latestBlockhash: () => latestBlockhash(nodes),
    latestSeconds: async () => {
      const slot = readInteger('getSlot', await nodes.read('getSlot', COMMITMENT));
      return Number(readInteger('getBlockTime', await nodes.read('getBlockTime', Number(slot))));
    },
    simulate: (transactionBytes) => simulate(nodes, transactionBytes),
    tokenAccounts: (owner, mint) => tokenAccounts(nodes, owner, mint),
    mint: (address) =>
      nodes.compare({
        what: `the token \`${address}\``,
        ask: (read) => mintOf(read, address),
        settle: allEqual((mint) => JSON.stringify([mint?.decimals, mint?.tokenProgram])),
      }),
    rentExemption: async (sizeBytes) =>
      readInteger('rent', await nodes.read('getMinimumBalanceForRentExemption', sizeBytes)),
    async broadcast(signedBytes) {
      const hash = bytesToBase58(decodeSolanaTransaction(signedBytes).signatures[0]!);
      const sending = { encoding: 'base64', preflightCommitment: COMMITMENT.commitment };
      const params = [bytesToBase64(signedBytes), sending];
      const outcome = await nodes.send({ method: 'sendTransaction', params, isAlreadyKnown });
      if (outcome.isAccepted) return { isAccepted: true, hash };
      const { refusal, isByAll } = outcome;
      return { isAccepted: false, ...classifyRefusal(refusal, signedBytes), isPartial: !isByAll };
    },
    statusOf: (hash, signedBytes) => solanaStatusOf(nodes, hash, signedBytes),
    transfersAfter: (reading) => {
      const commitment = confirmations === 1n ? 'confirmed' : 'finalized';
      return solanaTransfersAfter({ nodes, caip2, log, commitment, namedTokens }, reading);
    },
  };
}

/** Calls a method whose result has a context and returns its `value`. */
async function contextValue(nodes: Nodes, method: string, ...params: readonly unknown[]): Promise<unknown> {
  return readRecord(method, await nodes.read(method, ...params)).value;
}

async function balanceOf(nodes: Nodes, address: string, token: string | null): Promise<bigint> {
  if (token === null)
    return readInteger('getBalance', await contextValue(nodes, 'getBalance', address, COMMITMENT));
  const accounts = await tokenAccounts(nodes, address, token);
  return accounts.reduce((sum, { rawAmount }) => sum + rawAmount, 0n);
}

async function latestBlockhash(nodes: Nodes): ReturnType<SolanaChain['latestBlockhash']> {
  const method = 'getLatestBlockhash';
  const value = readRecord(method, await contextValue(nodes, method, COMMITMENT));
  return {
    blockhash: readText(method, value.blockhash),
    lastValidBlockHeight: readInteger(method, value.lastValidBlockHeight),
  };
}

async function tokenAccounts(
  nodes: Nodes,
  owner: string,
  mint: string,
): ReturnType<SolanaChain['tokenAccounts']> {
  const method = 'getTokenAccountsByOwner';
  let answer: unknown;
  try {
    answer = await contextValue(nodes, method, owner, { mint }, BASE64);
  } catch (error) {
    // The address is not a mint, so the owner has no accounts for it.
    if (error instanceof NodeError && /could not find mint|not a Token mint/i.test(error.message)) return [];
    throw error;
  }
  return readList(method, answer).map((item) => {
    const { pubkey, account } = readRecord(method, item);
    // mint 32 || owner 32 || amount u64 || …
    const data = accountData(method, account);
    if (data.length < 72) refuseAnswer(method);
    return { address: readText(method, pubkey), rawAmount: data.readBigUInt64LE(64) };
  });
}

async function mintOf(read: Read, address: string): ReturnType<SolanaChain['mint']> {
  const method = 'getAccountInfo';
  const account = readRecord(method, await read(method, address, BASE64)).value;
  if (account === null) return undefined;
  // authority option 4 + 32 || supply u64 || decimals u8 || is initialized u8 || …
  const data = accountData(method, account);
  const isMint = data.length >= 82 && data[45] === 1;
  if (!isMint) return undefined;
  return { decimals: data[44]!, tokenProgram: readText(method, readRecord(method, account).owner) };
}

function accountData(method: string, account: unknown): Buffer {
  const [encoded] = readList(method, readRecord(method, account).data);
  return Buffer.from(readText(method, encoded), 'base64');
}

async function simulate(nodes: Nodes, transactionBytes: Uint8Array): Promise<Simulation> {
  const method = 'simulateTransaction';
  try {
    const options = { ...BASE64, sigVerify: false, replaceRecentBlockhash: false };
    const value = readRecord(
      method,
      await contextValue(nodes, method, bytesToBase64(transactionBytes), options),
    );
    if (value.err !== null && value.err !== undefined) {
      return { succeeds: false, ...classifyFailure(value.err, value.logs, transactionBytes) };
    }
    return { succeeds: true, units: readInteger(method, value.unitsConsumed ?? 0) };
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    return { succeeds: false, ...classifyRefusal(error, transactionBytes) };
  }
}
