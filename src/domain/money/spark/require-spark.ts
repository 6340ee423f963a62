import assert from 'node:assert/strict';
import { ApiError } from '../../../errors.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { PlainChain } from '../../../ports/chains.ts';
import type { SparkOperators } from '../../../ports/spark-operators.ts';
import { type SparkNetworkName, sparkAddress, sparkDepositAddress } from '../../../signing/spark.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';

/** A wallet on one Spark network. */
export interface SparkAccount {
  readonly network: SparkNetworkName;
  readonly chain: PlainChain;
  readonly operators: SparkOperators;
  /** Compressed, hex. */
  readonly publicKey: string;
  readonly address: string;
  readonly depositAddress: string;
}

/**
 * The wallet's account on a Spark network: one key has a different address on each network.
 *
 * @throws ApiError not_supported when the network has no configured operators.
 */
export function requireSpark(
  { chains }: Pick<OperationContext, 'chains'>,
  { public_key: publicKey }: Pick<WalletRow, 'public_key'>,
  network: SparkNetworkName = 'MAINNET',
): SparkAccount {
  const chain = chains.find(`spark:${network.toLowerCase()}`);
  if (chain?.kind !== 'plain' || chain.spark === undefined) {
    throw new ApiError('not_supported', `/network: no operators of Spark's ${network} are configured here`);
  }
  assert(publicKey !== null, 'a spark wallet has its key beside its address');
  return {
    network,
    chain,
    operators: chain.spark,
    publicKey,
    address: sparkAddress(publicKey, network),
    depositAddress: sparkDepositAddress(publicKey, network),
  };
}
