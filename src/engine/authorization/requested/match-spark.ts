import { readInvoice } from '../../signing/lightning-invoice.ts';
import {
  isIdentityKey,
  type SparkNetworkName,
  type SparkOperation,
  sparkAddress,
  sparkDepositAddress,
} from '../../signing/spark.ts';
import type { Fields } from './completed-fields.ts';

// Compares an operation on Spark, which the server builds, with the request.

interface AskedOperation {
  readonly params: Fields;
  readonly operation: SparkOperation;
  /** The addresses of the wallet's key on the network of the request. */
  readonly own: { readonly address: string; readonly depositAddress: string };
}

type IsAsked = (asked: AskedOperation) => boolean;

const byMethod: Readonly<Record<string, IsAsked>> = {
  transfer: ({ params, operation }) =>
    moves(operation, { to: params.receiver_spark_address, token: null }) &&
    isAmount(operation.amount, params.amount_sats) &&
    isAmount(operation.fee, 0),
  transferTokens: ({ params, operation }) =>
    moves(operation, { to: params.receiver_spark_address, token: params.token_identifier }) &&
    isAmount(operation.amount, params.token_amount) &&
    isAmount(operation.fee, 0),
  // The Spark operators deduct their fee from the deposit.
  claimStaticDeposit: ({ params, operation, own }) =>
    moves(operation, { to: own.address, token: null, deposit: lower(params.transaction_id) }) &&
    isAmount(operation.amount, params.credit_amount_sats),
  withdraw: ({ params, operation }) =>
    moves(operation, { to: params.onchain_address, token: null }) && isWithdrawn(params, operation),
  // The invoice determines who is paid.
  payLightningInvoice: ({ params, operation }) =>
    moves(operation, { to: operation.to, token: null, invoice: lower(params.invoice) }) &&
    isAmount(operation.amount, readInvoice(String(params.invoice))?.sats ?? params.amount_sats_to_send) &&
    isSats(operation.fee) &&
    BigInt(operation.fee) <= BigInt(Number(params.max_fee_sats)),
};

const texts = ['id', 'network', 'owner', 'from', 'to', 'amount', 'fee'];
const textsOrNull = ['token', 'deposit'];

/** Returns whether the value has the fields of an operation, and no others. */
function isSparkOperation(given: Fields): given is Fields & SparkOperation {
  const { invoice } = given;
  return (
    Object.keys(given).every((name) => [...texts, ...textsOrNull, 'invoice'].includes(name)) &&
    texts.every((name) => typeof given[name] === 'string') &&
    textsOrNull.every((name) => given[name] === null || typeof given[name] === 'string') &&
    (invoice === undefined || typeof invoice === 'string')
  );
}

/**
 * Returns whether this is the operation that a body requests. Its id is not compared, because the server chooses it.
 */
export function isSparkOf({ method, network = 'MAINNET', params }: Fields, given: Fields): boolean {
  const isAsked = Object.hasOwn(byMethod, String(method)) ? byMethod[String(method)] : undefined;
  if (isAsked === undefined || !isSparkOperation(given)) return false;
  const operation = given;
  if (operation.network !== network || !isIdentityKey(operation.owner)) return false;
  const name = network as SparkNetworkName;
  const depositAddress = sparkDepositAddress(operation.owner, name);
  const own = { address: sparkAddress(operation.owner, name), depositAddress };
  const from = method === 'claimStaticDeposit' ? own.depositAddress : own.address;
  return operation.from === from && isAsked({ params: params as Fields, operation, own });
}

interface Movement {
  readonly to: unknown;
  readonly token: unknown;
  readonly deposit?: string;
  readonly invoice?: string;
}

function moves(operation: SparkOperation, { to, token, deposit, invoice }: Movement): boolean {
  return (
    operation.to === to &&
    operation.token === token &&
    operation.deposit === (deposit ?? null) &&
    operation.invoice === invoice
  );
}

/**
 * Returns whether the operation withdraws what the body asks for.
 *
 * NOTE: without an amount, the body asks to withdraw everything. The signer has to trust the server about how much
 * that is.
 */
function isWithdrawn(
  { amount_sats: asked, fee_amount_sats: fee, deduct_fee_from_withdrawal_amount: isDeducted }: Fields,
  { amount, fee: given }: SparkOperation,
): boolean {
  if (!isSats(amount) || !isSats(given) || (fee !== undefined && !isAmount(given, fee))) return false;
  if (asked === undefined) return true;
  return isAmount(isDeducted === true ? String(BigInt(amount) + BigInt(given)) : amount, asked);
}

function isAmount(given: string, asked: unknown): boolean {
  return isSats(given) && asked !== undefined && given === String(asked);
}

function isSats(text: unknown): text is string {
  return typeof text === 'string' && /^(0|[1-9][0-9]{0,77})$/.test(text);
}

function lower(text: unknown): string {
  return String(text).toLowerCase();
}
