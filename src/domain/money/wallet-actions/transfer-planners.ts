import { ethereumTransfer, transferCall, tronTransfer } from '../../../engine/actions/transfer-terms.ts';
import type { KnownAsset } from '../../../engine/assets/known-assets.ts';
import { bytesToBase64 } from '../../../engine/crypto/encoding.ts';
import { encodeSolanaTransfer, type TokenMint } from '../../../engine/signing/solana/encode-transfer.ts';
import { encodeTronRawData } from '../../../engine/signing/tron/raw-data.ts';
import { ApiError } from '../../../errors.ts';
import type { WalletChainType } from '../../../generated/schemas.ts';
import type { OperationContext, PlanContext } from '../../../ports/operation-context.ts';
import type { BuiltTransaction } from '../sending/broadcast.ts';
import { buildEthereum } from '../sending/build-ethereum.ts';
import { callChain, requireChain } from '../sending/call-chain.ts';
import { planCalls } from '../sending/plan-calls.ts';
import { type EthereumPlan, planEthereum } from '../sending/plan-ethereum.ts';
import { buildSolana, planSolana } from '../sending/plan-solana.ts';
import { buildTron, planTron } from '../sending/plan-tron.ts';
import { paysForAutomations } from '../sending/plan-user-operation.ts';

/** A transfer of one asset between two addresses of one chain. */
export interface TransferOrder {
  readonly asset: KnownAsset;
  /** The amount in base units. */
  readonly rawAmount: bigint;
  readonly from: string;
  readonly to: string;
}

export interface PlannedTransfer {
  /** The fee in base units of the native asset. */
  readonly estimatedFee: bigint;
  /** Builds the bytes, inside the database transaction that signs them. */
  build(context: OperationContext): Promise<BuiltTransaction>;
}

/** Plans a transfer from the state of its chain. Runs before the database transaction. */
type TransferPlanner = (context: PlanContext, order: TransferOrder) => Promise<PlannedTransfer>;

/** The planners of the chain types on which assets can be transferred. */
export const transferPlanners: Partial<Readonly<Record<WalletChainType, TransferPlanner>>> = {
  ethereum: planOnEthereum,
  solana: planOnSolana,
  tron: planOnTron,
};

async function planOnEthereum(context: PlanContext, order: TransferOrder): Promise<PlannedTransfer> {
  const { asset, from } = order;
  const { caip2 } = asset.chain;
  if (paysForAutomations(context, requireChain(context, { caip2, kind: 'evm', pointer: '/source/chain' }))) {
    const calls = [transferCall(movementOf(order))];
    const draft = { caip2, address: from, calls, method: 'transfer', isSponsored: true };
    const { estimatedFee, builds } = await planCalls(context, draft);
    return { estimatedFee, build: (unit) => builds[0]!(unit) };
  }
  const transaction = ethereumTransfer(movementOf(order));
  const plan = await planEthereum(context, { caip2, address: from, transaction });
  return {
    estimatedFee: feeOf(plan),
    build: (unit) => buildEthereum(unit, plan, 'transfer'),
  };
}

function movementOf({ asset, rawAmount, from, to }: TransferOrder) {
  return { tokenAddress: asset.tokenAddress, rawAmount, from, to };
}

// gas_limit * maximum price
function feeOf({ transaction }: EthereumPlan): bigint {
  const price = 'gas_price' in transaction ? transaction.gas_price : transaction.max_fee_per_gas;
  return BigInt(transaction.gas_limit ?? 0) * BigInt(price ?? 0);
}

// Source: Solana docs, transaction fees. The fee in lamports for one signature, without a priority fee.
const SIGNATURE_FEE = 5000n;
const MAX_U64 = 2n ** 64n - 1n;

async function planOnSolana(
  context: PlanContext,
  { asset, rawAmount, from, to }: TransferOrder,
): Promise<PlannedTransfer> {
  const { caip2 } = asset.chain;
  if (rawAmount > MAX_U64) throw new ApiError('insufficient_funds');
  const mint = asset.tokenAddress === null ? undefined : await readMint(context, caip2, asset.tokenAddress);
  const transaction = bytesToBase64(encodeSolanaTransfer({ from, to, mint, rawAmount }));
  const plan = await planSolana(context, { caip2, address: from, transaction });
  return { estimatedFee: SIGNATURE_FEE, build: async () => buildSolana(plan, 'transfer') };
}

async function readMint(context: PlanContext, caip2: string, address: string): Promise<TokenMint> {
  const chain = requireChain(context, { caip2, kind: 'solana', pointer: '/source/chain' });
  const mint = await callChain(chain.mint(address));
  if (mint === undefined) throw new ApiError('not_supported', `/source: no token at \`${address}\``);
  return { address, ...mint };
}

// Source: TRON's chain parameters getTransactionFee and getEnergyFee, in sun.
const SUN_PER_BYTE = 1000n;
const SUN_PER_ENERGY = 100n;
// The Protobuf overhead of the raw data, one signature, and the network's allowance for the result.
const BYTES_BESIDE = 3n + 67n + 64n;

async function planOnTron(context: PlanContext, order: TransferOrder): Promise<PlannedTransfer> {
  const { asset, rawAmount, from } = order;
  // Such an amount exceeds the total supply of sun. The API encodes amounts of sun as JSON numbers.
  if (asset.tokenAddress === null && rawAmount > Number.MAX_SAFE_INTEGER)
    throw new ApiError('insufficient_funds');
  const rawData = tronTransfer(movementOf(order));
  const plan = await planTron(context, { caip2: asset.chain.caip2, address: from, rawData });
  const bytes = BigInt(encodeTronRawData(plan.rawData).length) + BYTES_BESIDE;
  return {
    // CHOICE: an upper bound, which assumes no staked bandwidth or energy.
    estimatedFee: bytes * SUN_PER_BYTE + plan.energy * SUN_PER_ENERGY,
    build: async () => buildTron(plan, 'transfer'),
  };
}
