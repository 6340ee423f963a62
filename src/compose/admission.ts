import type { OperationId } from '../generated/operations.ts';
import type { Log } from '../ports/runtime.ts';
import {
  type Admission,
  type AdmissionLimits,
  createAdmission,
  measureLoopDelay,
} from '../server/admission.ts';

/** The operations that use a private key, or create a key for a session. */
const signing: readonly OperationId[] = [
  'authenticateUserSigner',
  'authenticateWalletIntents',
  'authenticateWallets',
  'authorizeIntent',
  'claimEthereumEarnIncentive',
  'createFiatPayout',
  'depositEthereumEarn',
  'executeWalletSwap',
  'exportWallet',
  'rawSignWallet',
  'transferFromWallet',
  'walletRpc',
  'withdrawEthereumEarn',
];

/** The admission control of one server. Undefined if everything is admitted. */
export function admissionFor(limits: AdmissionLimits | undefined, log: Log): Admission | undefined {
  if (limits === undefined) return undefined;
  return createAdmission({
    limits,
    signing,
    loop: measureLoopDelay(),
    now: performance.now.bind(performance),
    log,
  });
}
