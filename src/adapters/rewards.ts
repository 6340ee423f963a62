import { BrokenCircuitError, ConsecutiveBreaker, circuitBreaker, handleType } from 'cockatiel';
import {
  type AbiValue,
  rewardDistributor,
  rewardLeaf,
  rootOfProof,
} from '../engine/signing/ethereum/contract-calls.ts';
import { checksumAddress } from '../engine/signing/ethereum/signer.ts';
import { tracedFetch } from '../observability/measured.ts';
import type { Chains, EvmChain, Incentives } from '../ports/chains.ts';
import type { Log } from '../ports/runtime.ts';
import { ProviderUnavailableError, readBoundedText } from './outside-services.ts';

/** A reward as Merkl reports it. It counts only as far as the distributor confirms it. */
interface ReportedReward {
  /** Lower-case 0x hex. */
  readonly token: string;
  readonly symbol: string;
  readonly decimals: number;
  /** In base units. */
  readonly amount: bigint;
  /** Lower-case 0x hex. */
  readonly proof: readonly string[];
}

/** The format of the largest amount that the distributor can count: `uint208` has 63 decimal digits. */
const AMOUNT = /^\d{1,63}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
/** A Merkle tree with more levels would have more leaves than there are accounts. */
const MAX_PROOF = 64;
const MAX_SYMBOL = 32;
const MAX_DECIMALS = 255;
const DEFAULT_DECIMALS = 18;

/**
 * Reads the response to `GET /v4/users/{address}/rewards?chainId=…`: an array with one entry for each chain. Entries
 * that cannot be claimed in this form, such as those without a proof, are omitted. Returns undefined for any other
 * response.
 */
function readRewards(text: string, chainId: bigint): readonly ReportedReward[] | undefined {
  const answer = parse(text);
  if (!Array.isArray(answer)) return undefined;
  const entries = answer.map(objectOf);
  const rewards = entries.flatMap(({ chain, rewards }) =>
    String(objectOf(chain).id) === String(chainId) && Array.isArray(rewards) ? rewards : [],
  );
  return rewards.map(readReward).filter((reward) => reward !== undefined);
}

function readReward(given: unknown): ReportedReward | undefined {
  const { amount, proofs, token: described } = objectOf(given);
  const { address, symbol, decimals } = objectOf(described);
  const isClaimable =
    typeof amount === 'string' &&
    AMOUNT.test(amount) &&
    typeof address === 'string' &&
    ADDRESS.test(address) &&
    Array.isArray(proofs) &&
    proofs.length <= MAX_PROOF &&
    proofs.every((hash) => typeof hash === 'string' && HASH.test(hash));
  if (!isClaimable) return undefined;
  const isCount = Number.isInteger(decimals) && Number(decimals) >= 0 && Number(decimals) <= MAX_DECIMALS;
  return {
    token: address.toLowerCase(),
    symbol: symbolOf(symbol) ?? address.slice(0, 8),
    decimals: isCount ? Number(decimals) : DEFAULT_DECIMALS,
    amount: BigInt(amount),
    proof: proofs.map((hash: string) => hash.toLowerCase()),
  };
}

/** Returns a short, printable symbol, because anybody can name a token. */
function symbolOf(given: unknown): string | undefined {
  const isSymbol =
    typeof given === 'string' && given.length <= MAX_SYMBOL && /^[\p{L}\p{N}\p{P}\p{S} ]+$/u.test(given);
  return isSymbol ? given : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

const TIMEOUT_MS = 5_000;
/**
 * The maximum size of a response, because parsing it blocks the thread. A response lists the campaigns of every reward.
 */
const MAX_ANSWER_BYTES = 2 * 1024 * 1024;
/** After this many consecutive failures, Merkl is not called for BREAK_MS. */
const FAILURES_UNTIL_BREAK = 5;
const BREAK_MS = 10_000;
// CHOICE: the maximum number of tokens in one claim. Each token costs a read of the distributor and gas of the claim.
const MAX_REWARDS = 50;
const EMPTY_ROOT = `0x${'0'.repeat(64)}`;

export interface MerklOptions {
  readonly chains: Chains;
  readonly log: Log;
  /** The base URL of the API, without a trailing slash. */
  readonly url: string;
  /** The API key, which raises the API's rate limit. */
  readonly apiKey: string | undefined;
  /** The distributor of each chain, by CAIP-2 id. */
  readonly distributors: ReadonlyMap<string, string>;
}

/**
 * Rewards from Merkl's API v4, which only supplies proofs. The configured distributor decides what an account can
 * claim.
 *
 * INVARIANT: a reward can be claimed only with a proof that leads to the distributor's root, and only as far as the
 * distributor has not paid it yet. The API decides neither which contract is called nor who is paid.
 */
export function merklRewards({ chains, log, url, apiKey, distributors }: MerklOptions): Incentives {
  const host = new URL(url).host;
  const breaker = circuitBreaker(handleType(ProviderUnavailableError), {
    halfOpenAfter: BREAK_MS,
    breaker: new ConsecutiveBreaker(FAILURES_UNTIL_BREAK),
  });
  breaker.onBreak(() => log.warn({ host }, 'Merkl is failing; circuit breaker opened'));
  breaker.onReset(() => log.info({ host }, 'Merkl responds again; circuit breaker closed'));

  async function ask(chainId: bigint, address: string): Promise<readonly ReportedReward[]> {
    try {
      return await breaker.execute(() => fetchRewards({ url, apiKey, chainId, address }));
    } catch (error) {
      if (!(error instanceof BrokenCircuitError)) throw error;
      throw new ProviderUnavailableError(`${host}: skipped after repeated failures`, { cause: error });
    }
  }

  return {
    async rewards(caip2, address) {
      const distributor = distributors.get(caip2);
      const chain = chains.find(caip2);
      if (distributor === undefined || chain?.kind !== 'evm') return undefined;
      const reported = await ask(chain.chainId, address);
      const contract = { chain, address: distributor };
      const rewards = await confirm(contract, address.toLowerCase(), firstOfEach(reported));
      return { distributor: checksumAddress(distributor.slice(2)), rewards };
    },
  };
}

/** Returns one entry for each token, because a distributor has one claim for each token. */
function firstOfEach(reported: readonly ReportedReward[]): readonly ReportedReward[] {
  const byToken = new Map<string, ReportedReward>();
  for (const reward of reported) if (!byToken.has(reward.token)) byToken.set(reward.token, reward);
  return [...byToken.values()].slice(0, MAX_REWARDS);
}

interface Distributor {
  readonly chain: EvmChain;
  readonly address: string;
}

/**
 * Confirms rewards with the distributor.
 *
 * CHOICE: the proof of a reward may not lead to the distributor's root, for example because the root has changed since.
 * If the reward was claimed before, it is reported with its claimed amount only. If not, it is omitted.
 */
async function confirm(contract: Distributor, user: string, reported: readonly ReportedReward[]) {
  if (reported.length === 0) return [];
  const [root, ...claimed] = await Promise.all([
    askDistributor(contract, 'getMerkleRoot'),
    ...reported.map(({ token }) => askDistributor(contract, 'claimed', user, token)),
  ]);
  return reported.flatMap(({ token, symbol, decimals, amount, proof }, index) => {
    const rawClaimed = claimed[index] as bigint;
    const isProven =
      root !== EMPTY_ROOT &&
      amount > rawClaimed &&
      rootOfProof(rewardLeaf({ user, token, amount }), proof) === root;
    if (!isProven && rawClaimed === 0n) return [];
    return [
      {
        ...{ tokenAddress: checksumAddress(token.slice(2)), symbol, decimals, proof, rawClaimed },
        rawCumulative: isProven ? amount : rawClaimed,
      },
    ];
  });
}

/** Reads a value from the distributor: its root, or the amount that an account has claimed. */
async function askDistributor(
  { chain, address }: Distributor,
  name: 'getMerkleRoot' | 'claimed',
  ...args: AbiValue[]
): Promise<AbiValue> {
  const answer = await chain.read({ to: address, data: rewardDistributor.encodeCall(name, ...args) });
  const [value] = rewardDistributor.decodeResult(name, answer) ?? [];
  if (value === undefined) {
    throw new ProviderUnavailableError(
      `expected a reward distributor at \`${address}\` on \`${chain.caip2}\``,
    );
  }
  return value;
}

interface Question {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly chainId: bigint;
  readonly address: string;
}

/**
 * Requests the rewards of an address from the API.
 *
 * NOTE: messages must not contain the API key, which is part of the headers.
 *
 * @throws ProviderUnavailableError without a usable response.
 */
async function fetchRewards({ url, apiKey, chainId, address }: Question): Promise<readonly ReportedReward[]> {
  const { host } = new URL(url);
  const fail = (what: string, cause?: unknown) => new ProviderUnavailableError(`${host}: ${what}`, { cause });
  let status: number;
  let text: string | undefined;
  try {
    const response = await tracedFetch(`${url}/v4/users/${address}/rewards?chainId=${chainId}`, {
      span: 'rewards',
      headers: { accept: 'application/json', ...(apiKey === undefined ? {} : { 'x-api-key': apiKey }) },
      // Follow no redirect, because the operator has configured only this address.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    status = response.status;
    text = await readBoundedText(response, MAX_ANSWER_BYTES);
  } catch (error) {
    const isTimeout = error instanceof DOMException && error.name === 'TimeoutError';
    throw fail(isTimeout ? `no response within ${TIMEOUT_MS} ms` : 'no connection', error);
  }
  if (text === undefined) throw fail(`expected a response of at most ${MAX_ANSWER_BYTES} bytes`);
  // A failed request does not mean that there are no rewards, so it must not return an empty list.
  if (status !== 200) throw fail(`expected status 200, got ${status}`);
  const rewards = readRewards(text, chainId);
  if (rewards === undefined) throw fail('expected a list of chains with rewards');
  return rewards;
}
