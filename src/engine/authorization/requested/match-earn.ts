import type { EarnRequest } from '../../../generated/schemas.ts';
import {
  assetOfVault,
  claimAction,
  earnAction,
  feeCollectionAction,
  readEarnAmount,
  type VaultAsset,
} from '../../actions/earn-terms.ts';
import { chainNamed } from '../../assets/known-chains.ts';
import { equalBytes } from '../../crypto/encoding.ts';
import type { BatchCall } from '../../signing/ethereum/batch-executor.ts';
import {
  type AbiValue,
  type ContractAbi,
  decodeTokenCall,
  feeVault,
  rewardDistributor,
  tokenVault,
} from '../../signing/ethereum/contract-calls.ts';
import { type BuildingSettings, type BuiltPart, NotComparableError } from './built-part.ts';
import { acceptedTerms, actionFields, type Fields, hasOnly } from './completed-fields.ts';
import { type SignedCalls, signedCalls } from './match-calls.ts';
import type { SignTask } from './match-task.ts';

// Compares calls of vaults and of the rewards distributor with the body. A vault's id is derived from its smart
// contract and its asset, and all payments go to the wallet.

interface AskedOf extends Pick<BuildingSettings, 'rewardDistributors'> {
  readonly appId: string;
}

type ReadPart = (body: Fields, signed: SignedCalls, asked: AskedOf) => BuiltPart | undefined;

interface Operation {
  readonly read: ReadPart;
  /** The fields that the body may have. */
  readonly fields: readonly string[];
}

const byOperation: Readonly<Record<string, Operation>> = {
  deposit: { read: partOfDeposit, fields: ['vault_id', 'amount', 'raw_amount'] },
  withdraw: { read: partOfWithdrawal, fields: ['vault_id', 'amount', 'raw_amount'] },
  'fees/collect': { read: partOfCollection, fields: ['vault_id'] },
  'incentive/claim': { read: partOfClaim, fields: ['chain'] },
};

/**
 * Determines which part a task plays in the earn action of the body. Returns undefined if it plays none.
 *
 * @param operation the path after `/earn/ethereum/`.
 * @throws NotComparableError for a vault id that is not derived from a smart contract, and for rewards without a
 * configured distributor.
 */
export function partOfEarn(
  operation: string,
  body: Fields,
  task: SignTask,
  asked: AskedOf,
): BuiltPart | undefined {
  const signed = signedCalls(task);
  const found = Object.hasOwn(byOperation, operation) ? byOperation[operation] : undefined;
  if (signed === undefined || found === undefined) return undefined;
  if (!hasOnly(body, [...found.fields, ...actionFields])) return undefined;
  const part = found.read(body, signed, asked);
  if (part === undefined || signed.account === undefined) return part;
  return { ...part, accounts: [...part.accounts, signed.account] };
}

/** Matches a task that consists of some or all of: an approval of zero, an approval of the amount, and the deposit. */
function partOfDeposit(body: Fields, signed: SignedCalls, { appId }: AskedOf): BuiltPart | undefined {
  const { calls, caip2 } = signed;
  const last = calls.at(-1);
  const deposit = last && readVaultCall(tokenVault, 'deposit', last);
  const approvals = (deposit === undefined ? calls : calls.slice(0, -1)).map(readApproval);
  const vault = deposit === undefined ? approvals[0]?.spender : last?.to;
  if (vault === undefined || approvals.length > MAX_APPROVALS) return undefined;
  const asked = askedAmount(body, { appId, caip2, address: vault });
  if (asked === undefined) return undefined;
  const { rawAmount, asset } = asked;
  const isApproval = (approval: (typeof approvals)[number]): boolean =>
    approval?.spender === vault.toLowerCase() &&
    approval.token === asset.address &&
    [0n, rawAmount].includes(approval.amount);
  if (!approvals.every(isApproval)) return undefined;
  if (deposit !== undefined && BigInt(deposit[0] as bigint) !== rawAmount) return undefined;
  return {
    ...(deposit === undefined ? { role: 'prepares', atOnce: MAX_APPROVALS } : { role: 'pays', atOnce: 1 }),
    accounts: deposit === undefined ? [] : [String(deposit[1])],
    action: () => ({ action: earnAction('earn_deposit', body as EarnRequest, asked), unknown: [] }),
  };
}

const MAX_APPROVALS = 2;

interface Approval {
  /** In lower case, like `spender`. */
  readonly token: string;
  readonly spender: string;
  readonly amount: bigint;
}

function readApproval({ to, value, data }: BatchCall): Approval | undefined {
  const call = decodeTokenCall(data);
  return call?.name === 'approve' && value === 0n ? { ...call, token: to.toLowerCase() } : undefined;
}

/** Matches a withdrawal of the amount to the wallet, or the redemption of all the wallet's shares. */
function partOfWithdrawal(body: Fields, signed: SignedCalls, { appId }: AskedOf): BuiltPart | undefined {
  const call = onlyCall(signed);
  if (call === undefined) return undefined;
  const asked = askedAmount(body, { appId, caip2: signed.caip2, address: call.to });
  const withdrawn = readVaultCall(tokenVault, 'withdraw', call);
  const redeemed = readVaultCall(tokenVault, 'redeem', call);
  const [amount, receiver, owner] = withdrawn ?? redeemed ?? [];
  if (asked === undefined || amount === undefined) return undefined;
  if (withdrawn !== undefined && BigInt(amount as bigint) !== asked.rawAmount) return undefined;
  return {
    ...{ role: 'pays', atOnce: 1, accounts: [String(receiver), String(owner)] },
    action: () => ({ action: earnAction('earn_withdraw', body as EarnRequest, asked), unknown: [] }),
  };
}

/** Matches the collection of all fees to the wallet. */
function partOfCollection(body: Fields, signed: SignedCalls, { appId }: AskedOf): BuiltPart | undefined {
  const call = onlyCall(signed);
  if (call === undefined) return undefined;
  requireVault(body, { appId, caip2: signed.caip2, address: call.to });
  const [to] = readVaultCall(feeVault, 'withdrawFees', call) ?? [];
  if (to === undefined) return undefined;
  return {
    role: 'pays',
    atOnce: 1,
    accounts: [String(to)],
    action: () => ({ action: feeCollectionAction(body), unknown: [] }),
  };
}

/** Matches the claim of everything that the distributor owes the wallet. */
function partOfClaim(body: Fields, signed: SignedCalls, asked: AskedOf): BuiltPart | undefined {
  const call = onlyCall(signed);
  const chain = chainNamed(String(body.chain));
  if (call === undefined || chain?.caip2 !== signed.caip2) return undefined;
  const distributor = asked.rewardDistributors.get(chain.caip2);
  if (distributor === undefined) {
    throw new NotComparableError(
      `the signer has no distributor of rewards on \`${chain.caip2}\`; nothing was signed`,
    );
  }
  const [users] = readVaultCall(rewardDistributor, 'claim', call) ?? [];
  if (users === undefined || call.to.toLowerCase() !== distributor.toLowerCase()) return undefined;
  const accounts = [...new Set(users as readonly string[])];
  return {
    role: 'pays',
    atOnce: 1,
    accounts,
    action: () => ({ action: claimAction(body, chain), unknown: [] }),
  };
}

function onlyCall({ calls }: SignedCalls): BatchCall | undefined {
  return calls.length === 1 ? calls[0] : undefined;
}

/**
 * Decodes the arguments of a call to this function. Returns undefined for other calls, for calls with a value, and
 * for calls with bytes after the arguments.
 */
function readVaultCall<Name extends string>(
  contract: ContractAbi<Name>,
  name: Name,
  { value, data }: BatchCall,
): readonly AbiValue[] | undefined {
  const call = contract.decodeCall(data);
  if (call?.name !== name || value !== 0n) return undefined;
  return equalBytes(contract.encodeCall(name, ...call.args), data) ? call.args : undefined;
}

interface VaultCall {
  readonly appId: string;
  readonly caip2: string;
  readonly address: string;
}

/** Returns the amount of a body in base units of the vault's asset, or undefined for a body without an amount. */
function askedAmount(
  body: Fields,
  vault: VaultCall,
): { readonly rawAmount: bigint; readonly decimals: number; readonly asset: VaultAsset } | undefined {
  const asset = requireVault(body, vault);
  const { decimals } = asset;
  const { amount, raw_amount: raw } = body;
  const isText = (text: unknown): boolean => text === undefined || typeof text === 'string';
  if (!isText(amount) || !isText(raw) || (typeof raw === 'string' && !/^[0-9]{1,78}$/.test(raw))) {
    return undefined;
  }
  const asked = acceptedTerms(() => readEarnAmount(body as EarnRequest, decimals));
  return asked && { rawAmount: asked.rawAmount, decimals, asset };
}

/** Requires that the body names this vault, and returns the vault's asset. */
function requireVault(body: Fields, vault: VaultCall): VaultAsset {
  const asset = assetOfVault(String(body.vault_id), vault);
  if (asset !== undefined) return asset;
  throw new NotComparableError(
    `the vault \`${body.vault_id}\` is not the contract \`${vault.address}\` on \`${vault.caip2}\`, or was set up before ids followed from contracts and assets; nothing was signed`,
  );
}
