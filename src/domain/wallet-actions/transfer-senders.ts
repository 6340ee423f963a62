import { bytesTo0xHex, bytesToBase64 } from '../../crypto/encoding.ts';
import { ApiError } from '../../errors.ts';
import type { WalletChainType } from '../../generated/schemas.ts';
import type { OperationContext } from '../../services.ts';
import { encodeTokenCall } from '../../signing/ethereum/token-calls.ts';
import { encodeSolanaTransfer, type TokenMint } from '../../signing/solana/encode-transfer.ts';
import type { KnownAsset } from '../chains/known-assets.ts';
import { askChain, requireChain } from '../sending/ask-chain.ts';
import { buildEthereum } from '../sending/build-ethereum.ts';
import type { BuiltTransaction } from '../sending/built-transaction.ts';
import { type EthereumPlan, planEthereum } from '../sending/plan-ethereum.ts';
import { buildSolana, planSolana } from '../sending/send-solana.ts';

/** One asset to be moved between two addresses of one chain. */
export interface TransferOrder {
  readonly asset: KnownAsset;
  /** In base units. */
  readonly rawAmount: bigint;
  readonly from: string;
  readonly to: string;
}

export interface PlannedTransfer {
  /** In base units of the native asset. */
  readonly estimatedFee: bigint;
  /** Fixes the bytes, inside the transaction that signs them. */
  build(context: OperationContext): Promise<BuiltTransaction>;
}

/** Asks the chain; before the transaction where that is possible. */
type TransferSender = (context: OperationContext, order: TransferOrder) => Promise<PlannedTransfer>;

/** How each chain type moves an asset. */
export const transferSenders: Partial<Readonly<Record<WalletChainType, TransferSender>>> = {
  ethereum: sendOnEthereum,
  solana: sendOnSolana,
};

async function sendOnEthereum(
  context: OperationContext,
  { asset, rawAmount, from, to }: TransferOrder,
): Promise<PlannedTransfer> {
  const transaction =
    asset.tokenAddress === null
      ? { to, value: quantity(rawAmount) }
      : {
          to: asset.tokenAddress,
          data: bytesTo0xHex(encodeTokenCall({ name: 'transfer', to: to.toLowerCase(), amount: rawAmount })),
        };
  const plan = await planEthereum(context, { caip2: asset.chain.caip2, address: from, transaction });
  return {
    estimatedFee: feeOf(plan),
    build: (unit) => buildEthereum(unit, plan, 'transfer'),
  };
}

// gas_limit * price, the price being the most that may be taken.
function feeOf({ transaction }: EthereumPlan): bigint {
  const price = 'gas_price' in transaction ? transaction.gas_price : transaction.max_fee_per_gas;
  return BigInt(transaction.gas_limit ?? 0) * BigInt(price ?? 0);
}

// Source: Solana docs, transaction fees. Lamports for one signature; nothing is bid for a faster place.
const SIGNATURE_FEE = 5000n;
const MAX_U64 = 2n ** 64n - 1n;

async function sendOnSolana(
  context: OperationContext,
  { asset, rawAmount, from, to }: TransferOrder,
): Promise<PlannedTransfer> {
  const { caip2 } = asset.chain;
  if (rawAmount > MAX_U64) throw new ApiError('insufficient_funds');
  const mint = asset.tokenAddress === null ? undefined : await readMint(context, caip2, asset.tokenAddress);
  const transaction = bytesToBase64(encodeSolanaTransfer({ from, to, mint, rawAmount }));
  const plan = await planSolana(context, { caip2, address: from, transaction });
  return { estimatedFee: SIGNATURE_FEE, build: async () => buildSolana(plan, 'transfer') };
}

async function readMint(context: OperationContext, caip2: string, address: string): Promise<TokenMint> {
  const chain = requireChain(context, { caip2, kind: 'solana', pointer: '/source/chain' });
  const mint = await askChain(chain.mint(address));
  if (mint === undefined) throw new ApiError('not_supported', `/source: no token at \`${address}\``);
  return { address, ...mint };
}

function quantity(value: bigint): string {
  return `0x${value.toString(16)}`;
}
