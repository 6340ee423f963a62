import type { WalletRpcRequest } from '../../../generated/schemas.ts';
import {
  batchUnits,
  callingAccount,
  decodeRpcAction,
  exportAction,
  operationUnits,
  transactionUnits,
  unfoldBatches,
  withoutSuffix,
} from '../../actions/decode-action.ts';
import { decodeRawSignAction, decodeTronUnits } from '../../actions/decode-raw-bytes.ts';
import { decodeSolanaUnits } from '../../actions/decode-solana-units.ts';
import type { ActionUnit, PolicyAction } from '../../policy/action.ts';
import { type ChainType, requireRpcMethod } from '../../signing/chains.ts';
import {
  decodeEthereumTransaction,
  type EthereumTransaction,
  prepareEthereumTransaction,
} from '../../signing/ethereum/any-transaction.ts';
import type { RawSignParams } from '../../signing/sign-with-key.ts';
import { encodeTronRawData, type TronRawData } from '../../signing/tron/raw-data.ts';
import type { KnownAction } from '../provable-rules.ts';
import { type SignedRequestContent, UnauthorizedUseError } from '../signed-evidence.ts';
import type { BuiltPart } from './built-part.ts';
import { builtMethods, type SignTask, type WalletTask } from './match-task.ts';
import { requestedTransferAction } from './match-transfer.ts';

interface SigningWallet {
  readonly chainType: string;
  readonly address: string;
}

interface AskedOfWallet {
  readonly request: SignedRequestContent;
  /** The part of the path after the wallet id. */
  readonly subpath: string;
  /** The part that the task plays in an action that the server builds; undefined if it is not compared. */
  readonly builtPart: BuiltPart | undefined;
}

/**
 * Decodes the action that policies evaluate for a task from the data to be signed. It has the method of the signed
 * request. The caller must have checked that the request asks for this task.
 *
 * @throws SigningInputError for data that the signing method would reject too.
 */
export async function requestedAction(
  { request: { body }, subpath, builtPart }: AskedOfWallet,
  task: WalletTask,
  wallet: SigningWallet,
): Promise<KnownAction> {
  if (task.kind === 'export') return asKnown(exportAction(task.form === 'phrase'));
  if (subpath === '/raw_sign') {
    return asKnown(decodeRawSignAction(wallet.chainType as ChainType, task.params as RawSignParams));
  }
  if (subpath === '/rpc') return rpcAction(body, task, wallet);
  if (subpath === '/transfer') return transferOf(body, task, wallet);
  const method = Object.hasOwn(builtMethods, subpath) ? builtMethods[subpath]! : undefined;
  if (method === undefined) throw new UnauthorizedUseError('the signed request asks for something else');
  return builtPart?.action(wallet.address) ?? onlyMethod(method);
}

function asKnown(action: PolicyAction): KnownAction {
  return { action, unknown: [] };
}

/** Returns the action of a transfer. Policies evaluate its body, which was compared with the transaction. */
function transferOf(
  body: SignedRequestContent['body'],
  task: SignTask,
  { chainType }: SigningWallet,
): KnownAction {
  const action = requestedTransferAction(body, task, chainType);
  if (action === undefined) throw new UnauthorizedUseError('the signed request asks for something else');
  return asKnown(action);
}

/**
 * Returns an action without content.
 *
 * CHOICE: a delegation to one of our account contracts is evaluated by its method alone. Its effects are in the
 * transactions that use it.
 */
function onlyMethod(method: string): KnownAction {
  return { action: { method, units: [{ label: method }] }, unknown: 'all' };
}

async function rpcAction(
  body: SignedRequestContent['body'],
  task: SignTask,
  { chainType, address }: SigningWallet,
): Promise<KnownAction> {
  const method = String(body.method);
  // The same key could sign for another chain, whose methods the policy does not know.
  requireRpcMethod(chainType as ChainType, method);
  const isSent = method !== task.method;
  if (isSent && task.method === 'eth_sign7702Authorization') return onlyMethod(method);
  if (isSent && task.method === 'spark_operation') {
    return asKnown(await decodeRpcAction({ method } as WalletRpcRequest));
  }
  if (isSent) {
    const units = await sentUnits(body, task, address);
    const account = task.method === 'eth_signUserOperation' ? senderOf(task) : address;
    return asKnown(unfoldBatches({ method, units: units ?? unreadable }, account));
  }
  const request = { method, params: task.params } as WalletRpcRequest;
  return asKnown(unfoldBatches(await decodeRpcAction(request), callingAccount(request, address)));
}

const unreadable: readonly ActionUnit[] = [{ label: 'transaction', undecodable: 'it is of another kind' }];

/**
 * Returns the units of a transaction that is signed in order to be sent, or undefined if the method does not send it.
 */
async function sentUnits(
  { method, experimental_data_suffix: given }: SignedRequestContent['body'],
  { method: signing, params }: SignTask,
  address: string,
): Promise<readonly ActionUnit[] | undefined> {
  const suffix = typeof given === 'string' ? given : undefined;
  switch (signing) {
    case 'eth_signTransaction': {
      const { transaction } = params as { transaction: EthereumTransaction };
      const prepared = await prepareEthereumTransaction(transaction);
      const units = transactionUnits(await decodeEthereumTransaction(prepared.wireBytes()));
      // The suffix of a batch is appended after the batch, not to one of its calls.
      return method === 'wallet_sendCalls' ? unitsOfBatch(units, address) : withoutSuffix(units, suffix);
    }
    case 'eth_signUserOperation': {
      const { chain_id: chainId, user_operation: operation } = params as OperationParams;
      const units = operationUnits(operation.call_data, BigInt(chainId));
      return units && withoutSuffix(units, suffix);
    }
    case 'signTransaction':
      return decodeSolanaUnits((params as { transaction: string }).transaction);
    case 'tron_signTransaction':
      return decodeTronUnits(encodeTronRawData((params as { raw_data: TronRawData }).raw_data));
    default:
      return undefined;
  }
}

interface OperationParams {
  readonly chain_id: string | number;
  readonly user_operation: { readonly sender: string; readonly call_data: string };
}

function senderOf({ params }: SignTask): string {
  return (params as OperationParams).user_operation.sender;
}

/** Returns the units of a batch, which is a transaction of the wallet to itself without a value. */
function unitsOfBatch(units: readonly ActionUnit[], address: string): readonly ActionUnit[] | undefined {
  const [unit, ...others] = units;
  const call = unit?.ethereumCall;
  if (call === undefined || others.length > 0 || call.value !== 0n || call.chainId === undefined) {
    return undefined;
  }
  return call.to?.toLowerCase() === address.toLowerCase()
    ? batchUnits(call.data, call.chainId, address)
    : undefined;
}
