import {
  type FeeFields,
  feeExcess,
  type OperationFees,
  operationFeeExcess,
} from '../../../engine/actions/filled-fees.ts';
import { chainOfCaip2 } from '../../../engine/assets/known-chains.ts';
import type { EthereumTransaction } from '../../../engine/signing/ethereum/any-transaction.ts';
import { wordHex } from '../../../engine/signing/ethereum/transaction.ts';
import {
  parseEvmAddress,
  parseHexBytes,
  parseQuantity,
  parseSafeInteger,
} from '../../../engine/signing/fields.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { UnsignedEthereumTransaction } from '../../../generated/schemas.ts';
import type { EvmAuthorization, EvmCall, EvmChain, Simulation } from '../../../ports/chains.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { callChain, chainRefusal, insufficientFunds, requireChain } from './call-chain.ts';

/*
 * The fees that a chain's nodes suggest. Ceilings limit them and the estimated gas, but not values that the caller
 * sets. The signer compares filled-in values with the same ceilings.
 *
 * CHOICE: policies have no condition on the fee, because the API document lists the fields of `ethereum_transaction`.
 * The explanation of a policy decision shows the fee as `fee` of the decoded action.
 */

type Fees = Awaited<ReturnType<EvmChain['fees']>>;

/**
 * Refuses suggested prices above the ceilings.
 *
 * @throws ApiError transaction_broadcast_failure
 */
export function requirePricesBelow(chain: EvmChain, { maxFeePerGas, maxPriorityFeePerGas }: Fees): void {
  const { ceilings } = chain;
  if (ceilings === undefined) return;
  requireBelow(chain, 'wei per gas', maxFeePerGas, ceilings.maxFeePerGas);
  requireBelow(chain, 'wei per gas as a tip', maxPriorityFeePerGas ?? 0n, ceilings.maxPriorityFeePerGas);
}

/**
 * Refuses estimated gas above the ceiling.
 *
 * @throws ApiError transaction_broadcast_failure
 */
export function requireGasBelow(chain: EvmChain, gas: bigint): void {
  if (chain.ceilings !== undefined) requireBelow(chain, 'gas', gas, chain.ceilings.gas);
}

/**
 * Refuses a total fee, in wei, above the ceiling.
 *
 * @throws ApiError transaction_broadcast_failure
 */
export function requireFeeBelow(chain: EvmChain, fee: bigint): void {
  if (chain.ceilings !== undefined) requireBelow(chain, 'wei as the fee', fee, chain.ceilings.fee);
}

/**
 * Refuses filled-in fields above the ceilings.
 *
 * @param asked the fields that the caller has set, which have no ceiling.
 * @throws ApiError transaction_broadcast_failure
 */
export function requireFilledBelow(chain: EvmChain, asked: FeeFields, given: FeeFields): void {
  if (chain.ceilings === undefined) return;
  const excess = feeExcess(asked, given, chain.ceilings);
  if (excess !== undefined) requireBelow(chain, excess.unit, excess.amount, excess.ceiling);
}

/**
 * Refuses a user operation whose gas or price is above the ceilings.
 *
 * @throws ApiError transaction_broadcast_failure
 */
export function requireOperationBelow(chain: EvmChain, operation: OperationFees): void {
  if (chain.ceilings === undefined) return;
  const excess = operationFeeExcess(operation, chain.ceilings);
  if (excess !== undefined) requireBelow(chain, excess.unit, excess.amount, excess.ceiling);
}

function requireBelow({ caip2 }: EvmChain, unit: string, asked: bigint, ceiling: bigint): void {
  if (asked <= ceiling) return;
  throw new ApiError(
    'transaction_broadcast_failure',
    `the nodes of \`${caip2}\` ask for ${asked} ${unit}, more than the ceiling of ${ceiling}; nothing was signed or sent`,
  );
}

/** A transaction to send from an address, as the caller specified it. */
interface EthereumDraft {
  readonly caip2: string;
  readonly address: string;
  readonly transaction: UnsignedEthereumTransaction;
  /** Bytes to append to the calldata, if any. */
  readonly dataSuffix?: string | undefined;
  /** The smart contract to which the transaction delegates its sender (EIP-7702), if any. */
  readonly delegatesTo?: string | undefined;
}

/** A complete transaction except for its nonce, and the chain data that completed it. */
export interface EthereumPlan {
  readonly chain: EvmChain;
  readonly address: string;
  readonly transaction: EthereumTransaction;
  /** The account's transaction count on the chain; undefined when the caller specified the nonce. */
  readonly pendingCount: bigint | undefined;
  /** The bytes that were appended to the calldata, if any. */
  readonly dataSuffix?: string | undefined;
}

const TEMPO_TYPE = 118;

/**
 * Fills in a transaction with data from its chain and simulates it. Makes several chain calls, so run it outside any
 * database transaction.
 *
 * @throws ApiError and SigningInputError: invalid_data for a chain id, sender or field that does not match;
 * not_supported; insufficient_funds; transaction_execution_failure when the simulation fails;
 * transaction_broadcast_failure when the chain cannot be reached or suggests fees above the ceilings.
 */
export async function planEthereum(
  context: Pick<OperationContext, 'chains'>,
  draft: EthereumDraft,
): Promise<EthereumPlan> {
  const chain = requireChain(context, { caip2: draft.caip2, kind: 'evm' });
  const transaction = withSuffix(draft);
  requireSameChain(transaction, chain);
  requireSameSender(transaction, draft.address);
  const calls = callsOf(transaction, draft);
  const [pendingCount, fees, units, [balance = 0n]] = await callChain(
    Promise.all([
      transaction.nonce === undefined ? chain.nonce(draft.address) : undefined,
      feesFor(transaction, chain),
      simulatedGas(chain, calls),
      chain.balances(draft.address, [null]),
    ]),
  );
  const gas = transaction.gas_limit ?? gasWithin(chain, units + authorizationGas(draft));
  const filled = {
    ...transaction,
    ...fees,
    from: draft.address,
    chain_id: Number(chain.chainId),
    gas_limit: gas,
  } as EthereumTransaction;
  requireFilledBelow(chain, transaction, filled);
  // Tempo fees are paid in a token, and the transaction states who pays.
  const known = chainOfCaip2(draft.caip2);
  const paysInTokens = filled.type === TEMPO_TYPE || (known !== undefined && known.native === undefined);
  if (!paysInTokens) requireFunds(filled, { draft, calls, balance });
  const { address, dataSuffix } = draft;
  return { chain, address, transaction: filled, pendingCount, dataSuffix };
}

/**
 * Returns the transaction to send, with the suffix appended to its calldata.
 *
 * @throws ApiError invalid_data
 */
export function withSuffix({
  transaction,
  dataSuffix,
}: Pick<EthereumDraft, 'transaction' | 'dataSuffix'>): UnsignedEthereumTransaction {
  if (dataSuffix === undefined) return transaction;
  if ('calls' in transaction) {
    throw invalidField('/experimental_data_suffix', 'expected none with a transaction of type 118');
  }
  return { ...transaction, data: (transaction.data ?? '0x') + dataSuffix.slice(2) };
}

export function requireSameChain(
  { chain_id: given }: UnsignedEthereumTransaction,
  { caip2, chainId }: EvmChain,
) {
  if (given === undefined || parseQuantity(given, '/transaction/chain_id', 256) === chainId) return;
  throw invalidField(
    '/params/transaction/chain_id',
    `expected the chain id of \`${caip2}\`, got \`${given}\``,
  );
}

export function requireSameSender({ from }: UnsignedEthereumTransaction, address: string): void {
  if (from === undefined || parseEvmAddress(from, '/transaction/from') === address.toLowerCase()) return;
  throw invalidField(
    '/params/transaction/from',
    `expected the wallet's address \`${address}\`, got \`${from}\``,
  );
}

function callsOf(
  transaction: UnsignedEthereumTransaction,
  { address: from, delegatesTo }: EthereumDraft,
): readonly EvmCall[] {
  const given = 'calls' in transaction ? transaction.calls : [transaction];
  const authorizationList = readAuthorizations(transaction);
  return given.map(({ to, value, data }, index) => {
    const at = 'calls' in transaction ? `/transaction/calls/${index}` : '/transaction';
    return {
      from,
      to: to === undefined ? undefined : parseEvmAddress(to, `${at}/to`),
      value: value === undefined ? 0n : parseQuantity(value, `${at}/value`, 256),
      data: parseHexBytes(data ?? '0x', `${at}/data`),
      ...(delegatesTo === undefined ? {} : { delegatedTo: delegatesTo }),
      ...(authorizationList.length === 0 ? {} : { authorizationList }),
    };
  });
}

/**
 * Reads the authorizations that a transaction carries.
 *
 * @throws SigningInputError
 */
export function readAuthorizations(
  transaction: UnsignedEthereumTransaction | EthereumTransaction,
): EvmAuthorization[] {
  const list = 'authorization_list' in transaction ? transaction.authorization_list : undefined;
  return (list ?? []).map(({ contract, chain_id: chainId, nonce, r, s, y_parity: parity }, index) => {
    const at = `/transaction/authorization_list/${index}`;
    return {
      contract: parseEvmAddress(contract, `${at}/contract`),
      chainId: parseSafeInteger(chainId, `${at}/chain_id`),
      nonce: parseQuantity(nonce, `${at}/nonce`, 64),
      signature: `${wordHex(r, `${at}/r`)}${wordHex(s, `${at}/s`).slice(2)}0${parity}`,
    };
  });
}

// EIP-7702: the intrinsic cost of an authorization. A simulation without the authorization does not include it.
const AUTHORIZATION_GAS = 25_000n;

function authorizationGas({ delegatesTo }: EthereumDraft): bigint {
  return delegatesTo === undefined ? 0n : AUTHORIZATION_GAS;
}

/** Adds gas for one more authorization to a planned transaction. */
export function withAuthorizationGas(transaction: EthereumTransaction): EthereumTransaction {
  const gas = parseQuantity(transaction.gas_limit ?? 0, '/transaction/gas_limit', 64);
  return { ...transaction, gas_limit: hexOf(gas + withMargin(AUTHORIZATION_GAS)) };
}

// CHOICE: the gas limit of a call that depends on the previous call, when the node cannot simulate both in sequence
// because it lacks `eth_simulateV1`. The limit is several times what a swap or a deposit needs; unused gas is not paid.
export const UNKNOWN_GAS = 500_000n;

/**
 * Simulates the calls of a transaction in order, and returns the gas that they need together.
 *
 * @throws ApiError what `refusalOf` returns if a call fails after the calls before it.
 */
export async function simulatedGas(chain: EvmChain, calls: readonly EvmCall[]): Promise<bigint> {
  const simulation = await chain.simulate(calls);
  if (!simulation.succeeds) throw await refusalOf(chain, calls[simulation.index]!, simulation);
  return simulation.units.reduce<bigint>((sum, units) => sum + (units ?? UNKNOWN_GAS), 0n);
}

const PLAIN_TRANSFER_GAS = 21_000n;

/**
 * Adds a margin to a gas estimate. CHOICE: 20 %, because the state may change before inclusion. A plain transfer
 * needs exactly 21,000 and gets no margin.
 */
export function withMargin(units: bigint): bigint {
  return units === PLAIN_TRANSFER_GAS ? units : (units * 6n) / 5n;
}

/**
 * Returns the gas limit for an estimate.
 *
 * @throws ApiError transaction_broadcast_failure above the chain's ceiling.
 */
function gasWithin(chain: EvmChain, estimate: bigint): string {
  const gas = withMargin(estimate);
  requireGasBelow(chain, gas);
  return hexOf(gas);
}

/** Returns the fee fields that the transaction's type needs and the caller omitted. */
async function feesFor(transaction: UnsignedEthereumTransaction, chain: EvmChain): Promise<object> {
  const gasPrice = 'gas_price' in transaction ? transaction.gas_price : undefined;
  const { max_fee_per_gas: maxFee, max_priority_fee_per_gas: priority } = transaction;
  const isDynamic = maxFee !== undefined || priority !== undefined || 'authorization_list' in transaction;
  const fees = await chain.fees();
  const isLegacy =
    transaction.type === 0 ||
    transaction.type === 1 ||
    (transaction.type === undefined &&
      !isDynamic &&
      (gasPrice !== undefined || fees.maxPriorityFeePerGas === undefined));
  // Fees that the caller sets are not compared with the prices of the nodes.
  if (isLegacy ? gasPrice === undefined : maxFee === undefined || priority === undefined)
    requirePricesBelow(chain, fees);
  if (isLegacy) return { type: transaction.type ?? 0, gas_price: gasPrice ?? hexOf(fees.maxFeePerGas) };
  const suggested = fees.maxPriorityFeePerGas ?? 0n;
  const given = priority === undefined ? undefined : quantityAt(priority, 'max_priority_fee_per_gas');
  const cap = maxFee === undefined ? undefined : quantityAt(maxFee, 'max_fee_per_gas');
  const tip = given ?? (cap !== undefined && cap < suggested ? cap : suggested);
  const type = transaction.type ?? ('authorization_list' in transaction ? 4 : 2);
  return {
    type,
    max_fee_per_gas: maxFee ?? hexOf(fees.maxFeePerGas + (tip > suggested ? tip - suggested : 0n)),
    max_priority_fee_per_gas: priority ?? hexOf(tip),
  };
}

/** Returns the fee fields of a transaction at the chain's current prices. */
export function feeFieldsOf({ maxFeePerGas, maxPriorityFeePerGas: tip }: Fees): object {
  if (tip === undefined) return { type: 0, gas_price: hexOf(maxFeePerGas) };
  return { type: 2, max_fee_per_gas: hexOf(maxFeePerGas), max_priority_fee_per_gas: hexOf(tip) };
}

function quantityAt(value: number | string, field: string): bigint {
  return parseQuantity(value, `/transaction/${field}`, 256);
}

/** Returns the error for a refused call. It contains the amounts if the sender has too little of the native asset. */
async function refusalOf(
  chain: EvmChain,
  { from, value }: EvmCall,
  { reason, message }: Extract<Simulation, { succeeds: false }>,
): Promise<ApiError> {
  const [balance = 0n] = reason === 'insufficient_funds' ? await chain.balances(from, [null]) : [value];
  if (balance >= value) return chainRefusal(reason, message);
  return insufficientFunds({ caip2: chain.caip2, address: from, tokenAddress: null, needed: value, balance });
}

/** Returns the maximum gas cost of a transaction: gas_limit * price, in wei. */
function feeOf(transaction: EthereumTransaction): bigint {
  const gas = parseQuantity(transaction.gas_limit ?? 0, '/transaction/gas_limit', 64);
  const field = 'gas_price' in transaction ? 'gas_price' : 'max_fee_per_gas';
  const price = ('gas_price' in transaction ? transaction.gas_price : transaction.max_fee_per_gas) ?? 0;
  return gas * quantityAt(price, field);
}

// Makes the check that a node makes before it accepts a transaction: the balance must cover value + gas_limit * price.
function requireFunds(
  transaction: EthereumTransaction,
  {
    draft: { caip2, address },
    calls,
    balance,
  }: { draft: EthereumDraft; calls: readonly EvmCall[]; balance: bigint },
): void {
  const cost = calls.reduce((sum, { value }) => sum + value, feeOf(transaction));
  if (cost > balance) throw insufficientFunds({ caip2, address, tokenAddress: null, needed: cost, balance });
}

export function hexOf(value: bigint): string {
  return `0x${value.toString(16)}`;
}

/**
 * Reads the nonce that the caller specified; undefined if there is none.
 *
 * CHOICE: a nonce that no account can ever reach is refused.
 */
export function givenNonce({ nonce }: EthereumTransaction): number | undefined {
  return nonce === undefined ? undefined : parseSafeInteger(nonce, '/transaction/nonce');
}
