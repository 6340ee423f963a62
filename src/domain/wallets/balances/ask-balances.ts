import type { KnownAsset } from '../../../assets/known-assets.ts';
import type { KnownChain } from '../../../assets/known-chains.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { readChain, requireKnownChain } from '../../access/chains/ask-chains.ts';

type AskContext = Pick<OperationContext, 'chains'>;

/** A balance query for one address on one chain. */
export interface BalanceQuestion {
  readonly chain: KnownChain;
  readonly address: string;
  readonly assets: readonly KnownAsset[];
}

export interface Holding {
  readonly asset: KnownAsset;
  /** In base units. */
  readonly rawAmount: bigint;
}

/** Concurrent balance queries of one request: enough to hide latency, few enough to spare the nodes. */
const AT_ONCE = 8;

/**
 * Queries the balances of addresses, several at once.
 *
 * Result: the holdings in the order of the questions and their assets.
 *
 * @throws ApiError not_supported for a chain that is not configured, unavailable when one cannot be reached, because
 * a partial balance would be wrong.
 */
export async function askBalances(
  context: AskContext,
  questions: readonly BalanceQuestion[],
): Promise<Holding[]> {
  const answers: Holding[][] = [];
  const open = questions.entries();
  const askOn = async (): Promise<void> => {
    for (const [index, question] of open) answers[index] = await askOne(context, question);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askOn));
  return answers.flat();
}

async function askOne(context: AskContext, { chain, address, assets }: BalanceQuestion): Promise<Holding[]> {
  const tokenAddresses = assets.map(({ tokenAddress }) => tokenAddress);
  const amounts = await readChain(requireKnownChain(context, chain).balances(address, tokenAddresses), chain);
  return assets.map((asset, index) => ({ asset, rawAmount: amounts[index] ?? 0n }));
}
