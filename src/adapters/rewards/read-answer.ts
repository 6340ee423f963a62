/** A reward as Merkl reports it. Nothing of it is believed that the distributor does not confirm. */
export interface ReportedReward {
  /** Lower-case 0x hex. */
  readonly token: string;
  readonly symbol: string;
  readonly decimals: number;
  /** In base units. */
  readonly amount: bigint;
  /** Lower-case 0x hex. */
  readonly proof: readonly string[];
}

/** What the distributor can count: `uint208` has 63 decimal digits. */
const AMOUNT = /^\d{1,63}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const HASH = /^0x[0-9a-fA-F]{64}$/;
/** A tree with more levels than this would have more leaves than there are accounts. */
const MAX_PROOF = 64;
const MAX_SYMBOL = 32;
const MAX_DECIMALS = 255;
const DEFAULT_DECIMALS = 18;

/**
 * Reads the answer to `GET /v4/users/{address}/rewards?chainId=…`: an array with one entry for each chain. Entries
 * that cannot be claimed as they are, such as those without a proof, are left out. Undefined when it is something
 * else.
 */
export function readRewards(text: string, chainId: bigint): readonly ReportedReward[] | undefined {
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

/** Printable and short, because anybody can name a token. */
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
