import { loadOnce } from '../load-once.ts';
import { type ChainType, rawSign } from './chains.ts';
import { isOfflineMethod, type OfflineMethods, signOffline } from './offline-rpc.ts';
import type { RawSignParams } from './raw-sign.ts';
import { InvalidFieldError } from './signing-errors.ts';
import type { SparkOperation } from './spark-operation.ts';

/** Params and data of everything that a wallet's key signs: rpc methods that need no network, and two others. */
export interface SigningMethods extends OfflineMethods {
  raw_sign: { params: RawSignParams; data: `0x${string}` };
  /** r || s, hex. */
  spark_operation: { params: SparkOperation; data: string };
}

const loadSpark = loadOnce(() => import('./spark-operation.ts'));

export type SigningMethod = keyof SigningMethods;

/** What to sign. The params are JSON, as in the contract, so that they can be sent to another process. */
export interface SigningTask<Method extends SigningMethod = SigningMethod> {
  readonly method: Method;
  readonly params: SigningMethods[Method]['params'];
}

/**
 * Signs with a wallet's private key. The caller checks that the wallet's chain supports the method.
 * Throws SigningInputError, whose field points into the params.
 */
export async function signWithKey<Method extends SigningMethod>(
  chainType: ChainType,
  privateKey: Uint8Array,
  { method, params }: SigningTask<Method>,
): Promise<SigningMethods[Method]['data']> {
  if (method === 'raw_sign') return rawSign(chainType, privateKey, params as RawSignParams);
  if (method === 'spark_operation') {
    return (await loadSpark()).signSparkOperation(privateKey, params as SparkOperation);
  }
  // INVARIANT: only the table's own methods run: an inherited one could return the key.
  if (!isOfflineMethod(method)) throw new InvalidFieldError('/method', 'expected a method that signs');
  return signOffline(method, privateKey, params as never);
}
