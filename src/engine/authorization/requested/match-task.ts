import { p256PublicKeyPoint, parseP256PublicKey } from '../../crypto/p256.ts';
import { type ChainType, rpcMethodsOf } from '../../signing/chains.ts';
import { parseQuantity, type Quantity } from '../../signing/fields.ts';
import { type SignedRequestContent, UnauthorizedUseError } from '../signed-evidence.ts';
import type { BuildingSettings, BuiltPart } from './built-part.ts';
import {
  completedOnEthereum,
  completedOnTron,
  type Fields,
  isCompletedBy,
  isSame,
} from './completed-fields.ts';
import { isBatchOf, isOfChain, isOperationOf, isSolanaOf } from './match-calls.ts';
import { partOfEarn } from './match-earn.ts';
import { partOfPayout } from './match-payout.ts';
import { isSparkOf } from './match-spark.ts';
import { partOfSwap } from './match-swap.ts';
import { isTransferOf } from './match-transfer.ts';

/** What a wallet's key is to be used for. */
export type WalletTask =
  | { readonly kind: 'sign'; readonly method: string; readonly params: unknown }
  | { readonly kind: 'export'; readonly form: 'phrase' | 'private-key'; readonly recipient: Uint8Array };

type Body = SignedRequestContent['body'];

/** Methods that sign transactions which the server builds. They can move funds; none of them signs a message. */
const transactionMethods: ReadonlySet<string> = new Set([
  'eth_signTransaction',
  'eth_signUserOperation',
  'eth_sign7702Authorization',
  'signTransaction',
  'tron_signTransaction',
  'spark_operation',
]);

/**
 * Returns whether wallets of this chain type support the task. All of them support exports and raw signatures here.
 *
 * INVARIANT: a request for a transaction on one chain cannot make the key sign for another chain with the same curve.
 */
export function isTaskOfChain(task: WalletTask, chainType: string): boolean {
  if (task.kind === 'export' || task.method === 'raw_sign') return true;
  if (task.method === 'spark_operation') return chainType === 'spark';
  return rpcMethodsOf(chainType as ChainType).includes(task.method);
}

/**
 * Returns whether the server may have built the task itself. It then cannot be compared with a request field by
 * field.
 *
 * NOTE: a transaction without a chain id (EIP-155) is valid on every chain, so the server builds none.
 */
export function isTransactionTask(task: WalletTask): boolean {
  if (task.kind !== 'sign' || !transactionMethods.has(task.method)) return false;
  const { method, params } = task;
  if (method === 'eth_signTransaction')
    return (params as { transaction: Fields }).transaction.chain_id !== undefined;
  return method !== 'eth_sign7702Authorization' || delegatesToOurs(params);
}

/** The smart contracts to which the server delegates accounts, for batches and for sponsored operations. Lower case. */
const ourContracts: ReadonlySet<string> = new Set([
  '0xe6cae83bde06e4c305530e199d7217f42808555b',
  '0x00000000bebedb7c30ee418158e26e31a5a8f3e2',
]);

/**
 * Returns whether the task delegates the account to one of our smart contracts.
 *
 * NOTE: a delegation for chain 0 is valid on every chain, so it does not count here.
 */
function delegatesToOurs(params: unknown): boolean {
  const { contract, chain_id: chainId } = params as Fields;
  return (
    typeof contract === 'string' &&
    ourContracts.has(contract.toLowerCase()) &&
    parseQuantity(chainId as Quantity, '/chain_id', 52) !== 0n
  );
}

/**
 * Operations on a wallet whose transactions the server builds from data that the signed request does not contain. Maps
 * the path after the wallet to the method under which policies evaluate the operation.
 */
export const builtMethods: Readonly<Record<string, string>> = {
  '/swap': 'swap',
  '/payout/fiat': 'payout',
  '/earn/ethereum/deposit': 'earn_deposit',
  '/earn/ethereum/withdraw': 'earn_withdraw',
  '/earn/ethereum/incentive/claim': 'earn_incentive_claim',
  '/earn/ethereum/fees/collect': 'earn_fee_collect',
};

/** Describes the requested operation and its wallet. */
interface RequestedOf {
  /** The part of the path after the wallet id. */
  readonly subpath: string;
  readonly chainType: string;
  readonly appId: string;
  /**
   * Undefined if the server itself has the keys. Transactions that it builds are then not compared with the request.
   */
  readonly building: BuildingSettings | undefined;
}

/**
 * Requires that the request asks for this task.
 *
 * @returns the part that the task plays in an action that the server builds; undefined if it is not compared.
 * @throws UnauthorizedUseError if the request does not ask for the task; NotComparableError if that cannot be
 * determined.
 */
export function requireRequested(
  { method, body }: SignedRequestContent,
  asked: RequestedOf,
  task: WalletTask,
): BuiltPart | undefined {
  const { subpath, building } = asked;
  if (
    method === 'POST' &&
    task.kind === 'sign' &&
    building !== undefined &&
    Object.hasOwn(builtMethods, subpath)
  ) {
    const part = partOf(body, task, { ...asked, building });
    if (part !== undefined) return part;
  } else if (method === 'POST' && isRequested(asked, body, task)) return undefined;
  throw new UnauthorizedUseError('the signed request asks for something else');
}

function partOf(
  body: Body,
  task: SignTask,
  { subpath, chainType, appId, building }: RequestedOf & { readonly building: BuildingSettings },
): BuiltPart | undefined {
  if (subpath === '/swap') return partOfSwap(body, task, { chainType, ...building });
  if (subpath === '/payout/fiat') return partOfPayout(body, task, chainType);
  return partOfEarn(subpath.slice('/earn/ethereum/'.length), body, task, { appId, ...building });
}

type IsSigned = (body: Body, task: SignTask, asked: RequestedOf) => boolean;

/** Operations on a wallet that sign the content of their body, by the part of the path after the wallet id. */
const signingPaths: Readonly<Record<string, IsSigned>> = {
  '/raw_sign': (body, task) => task.method === 'raw_sign' && isSame(task.params, body.params),
  '/rpc': isRequestedRpc,
  // A server with a separate signer has no exchange.
  '/transfer': (body, task, { chainType, building }) =>
    isTransferOf(body, task, { chainType, hasExchange: building === undefined }),
};

function isRequested(asked: RequestedOf, body: Body, task: WalletTask): boolean {
  const { subpath } = asked;
  if (task.kind === 'export') return isRequestedExport(subpath, body, task);
  if (Object.hasOwn(signingPaths, subpath)) return signingPaths[subpath]!(body, task, asked);
  // Operations on Spark are only requested through RPC.
  return Object.hasOwn(builtMethods, subpath) && isTransactionTask(task) && task.method !== 'spark_operation';
}

const EXPORT_PATH = '/export';

function isRequestedExport(
  subpath: string,
  body: Body,
  { form, recipient }: Extract<WalletTask, { kind: 'export' }>,
): boolean {
  const isRpc = subpath === '/rpc';
  if (!isRpc && subpath !== EXPORT_PATH) return false;
  const given = (isRpc ? body.params : body) as Fields;
  const phrase = isRpc ? body.method === 'exportSeedPhrase' : body.export_seed_phrase === true;
  if (isRpc && !phrase && body.method !== 'exportPrivateKey') return false;
  if ((form === 'phrase') !== phrase || typeof given.recipient_public_key !== 'string') return false;
  const point = p256PublicKeyPoint(parseP256PublicKey(given.recipient_public_key));
  return Buffer.compare(point, recipient) === 0;
}

export type SignTask = Extract<WalletTask, { kind: 'sign' }>;

/** RPC methods that sign transactions which the server completes or builds. */
const sendingMethods: Readonly<Record<string, (body: Body, task: SignTask) => boolean>> = {
  eth_sendTransaction: isSentTransaction,
  wallet_sendCalls: areSentCalls,
  signAndSendTransaction: (body, task) =>
    task.method === 'signTransaction' && isSolanaOf(body, task.params as Fields),
  tron_sendTransaction: isSentTron,
  transfer: isSentOnSpark,
  transferTokens: isSentOnSpark,
  claimStaticDeposit: isSentOnSpark,
  withdraw: isSentOnSpark,
  payLightningInvoice: isSentOnSpark,
};

function isSentOnSpark(body: Body, { method, params }: SignTask): boolean {
  return method === 'spark_operation' && isSparkOf(body, params as Fields);
}

function isRequestedRpc(body: Body, task: SignTask): boolean {
  const asked = String(body.method);
  if (Object.hasOwn(sendingMethods, asked)) return sendingMethods[asked]!(body, task);
  if (asked !== task.method) return false;
  const options = body.signature_options as Fields | undefined;
  if (options?.type === 'erc1271') return isForSmartAccount(body, task.params as Fields);
  return asked === 'eth_sign7702Authorization'
    ? isCompletedBy(body.params as Fields, task.params as Fields, new Set(['nonce']))
    : isSame(task.params, body.params);
}

/**
 * Returns whether the task has the params of the body, and a smart wallet on the body's chain.
 *
 * NOTE: an owner can have several smart wallets. The signer does not compare which of them the signature is for.
 */
function isForSmartAccount(body: Body, { smart_account: account, ...params }: Fields): boolean {
  return isSame(params, body.params) && isOfChain(body, (account as Fields | undefined)?.chain_id ?? 0);
}

function isSentTron({ params }: Body, task: SignTask): boolean {
  if (task.method !== 'tron_signTransaction') return false;
  const { raw_data: given } = task.params as { raw_data: Fields };
  return isCompletedBy((params as { raw_data: Fields }).raw_data, given, completedOnTron);
}

/**
 * Returns whether the task has the calls of a body, as one transaction or as a user operation, or is the delegation
 * that either may need.
 */
function areSentCalls(body: Body, task: SignTask): boolean {
  if (task.method === 'eth_signTransaction') {
    return isBatchOf(body, (task.params as { transaction: Fields }).transaction);
  }
  return isSponsored(body, task);
}

function isSponsored(body: Body, task: SignTask): boolean {
  if (task.method === 'eth_signUserOperation') return isOperationOf(body, task.params as Fields);
  if (task.method !== 'eth_sign7702Authorization') return false;
  return delegatesToOurs(task.params) && isOfChain(body, (task.params as Fields).chain_id);
}

/**
 * Returns the accounts for which a task acts, if the server states them: the wallet in a batch, the sender of a user
 * operation, or the owner of a contract on Tron. Returns an empty list for other tasks, and if the owner's request
 * itself states the account.
 */
export function accountsOf({ body }: SignedRequestContent, task: WalletTask): readonly string[] {
  if (task.kind !== 'sign' || body.method === task.method) return [];
  if (task.method === 'tron_signTransaction') return contractOwnersOf(task);
  if (task.method === 'eth_signUserOperation') {
    return [String((task.params as { user_operation: Fields }).user_operation.sender)];
  }
  if (task.method !== 'eth_signTransaction' || body.method !== 'wallet_sendCalls') return [];
  return [String((task.params as { transaction: Fields }).transaction.to)];
}

/**
 * Returns the accounts whose funds a task on Tron moves. A key can also sign for other accounts that gave it
 * permission.
 */
export function contractOwnersOf(task: WalletTask): readonly string[] {
  if (task.kind !== 'sign' || task.method !== 'tron_signTransaction') return [];
  const { raw_data: rawData } = task.params as { raw_data: Fields };
  return (rawData.contract as readonly Fields[]).map((contract) => String(contract.owner_address));
}

/**
 * Returns whether the task is the transaction that the client sent, with only those additions that the server may
 * fill in.
 */
function isSentTransaction(body: Body, task: SignTask): boolean {
  if (body.sponsor === true) return isSponsored(body, task);
  if (task.method !== 'eth_signTransaction') return false;
  const asked = (body.params as { transaction: Fields }).transaction;
  const { experimental_data_suffix: suffix, caip2 } = body;
  const { transaction } = task.params as { transaction: Fields };
  const data = typeof suffix === 'string' ? { data: `${asked.data ?? '0x'}${suffix.slice(2)}` } : {};
  return (
    String(caip2) === `eip155:${Number(transaction.chain_id)}` &&
    isCompletedBy({ ...asked, ...data }, transaction, completedOnEthereum)
  );
}

/** The operations that signed requests can authorize: paths after the wallet id, and RPC methods that send. */
export const comparedOperations = {
  paths: [...Object.keys(signingPaths), EXPORT_PATH, ...Object.keys(builtMethods)],
  sendingMethods: Object.keys(sendingMethods),
} as const;
