import { normalizeAddress } from '../../../engine/assets/addresses.ts';
import { chainNamed, chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  ReindexWalletAutomationRequest,
  WalletAutomationReindexAssetResult,
  WalletAutomationReindexResponse,
} from '../../../generated/schemas.ts';
import type { ChainTransfer } from '../../../ports/chains.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { addressOn, NATIVE } from '../../access/automations/automation.ts';
import { requireKnownChain } from '../../access/chains/chains.ts';
import type { Tables } from '../../tables.ts';
import {
  isOwnTransaction,
  matchingAttachment,
  startExecution,
} from '../../wallets/wallet-automations/trigger-automations.ts';
import { findWallet, findWalletByAddress } from '../../wallets/wallets/find-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet.entity.ts';

// KYSELY: the condition has a branch that depends on the newest transfer.

/** The state of a wallet's asset on the chain. */
export interface Holding {
  /** The balance in base units; undefined if the chain cannot be reached. */
  readonly rawBalance: bigint | undefined;
  /**
   * The newest deposit to the wallet. Undefined if the last `SEARCHED` transfers contain none, if it came from the
   * wallet itself, or if the chain does not list transfers by address.
   */
  readonly newest: ChainTransfer | undefined;
}

/** The number of an address's newest transfers that are searched for a deposit. */
const SEARCHED = 50;

interface Subject {
  readonly wallet: WalletRow;
  readonly chain: KnownChain;
  /** The CAIP-2 id in the notation of the API, which differs for Tron. */
  readonly caip2: string;
  readonly assetAddress: string;
}

/**
 * Reads the balance of the asset and its newest deposit from the chain. Returns neither if the chain cannot be reached.
 *
 * @throws ApiError invalid_data; not_supported for a chain that is not configured.
 */
export async function planReindex(
  context: PlanContext,
  body: ReindexWalletAutomationRequest,
): Promise<Holding> {
  const { wallet, chain, assetAddress } = await readSubject(context, body);
  const port = requireKnownChain(context, chain);
  const token = assetAddress === NATIVE ? null : assetAddress;
  try {
    const [rawBalance = 0n] = await port.balances(wallet.address, [token]);
    const transfers = await port.transfersOf?.({
      address: wallet.address,
      tokenAddresses: [token],
      beforePosition: undefined,
      limit: SEARCHED,
    });
    const newest = transfers?.find(({ recipient }) => normalizeAddress(recipient) === wallet.address);
    // A transfer from the wallet to itself is not a deposit. An execution for it would be deleted again.
    const isOwn =
      newest !== undefined &&
      (await isOwnTransaction(context, {
        ...{ walletId: wallet.id, caip2: chain.caip2, transactionHash: newest.hash },
      }));
    return { rawBalance, newest: isOwn ? undefined : newest };
  } catch (err) {
    context.log.warn(
      { err, wallet: wallet.id, caip2: chain.caip2 },
      'failed to read the balance of a wallet',
    );
    return { rawBalance: undefined, newest: undefined };
  }
}

/**
 * Starts the execution of the automation that matches an asset of a wallet, as if the wallet's balance had just been
 * deposited.
 *
 * @throws ApiError invalid_data; what `planReindex` throws.
 */
export async function reindexAutomation(
  context: OperationContext,
  body: ReindexWalletAutomationRequest,
  planned: Planned<Holding>,
): Promise<WalletAutomationReindexResponse> {
  const subject = await readSubject(context, body);
  const { rawBalance, newest } = unwrapPlan(planned);
  const { status, existing } = await startUnlessPresent(context, subject, { rawBalance, newest });
  return {
    wallet_id: subject.wallet.id,
    results: [
      {
        asset_address: subject.assetAddress,
        caip2: subject.caip2 as WalletAutomationReindexAssetResult['caip2'],
        status,
        raw_balance: rawBalance === undefined ? null : String(rawBalance),
        existing_execution_id: existing ?? null,
      },
    ],
  };
}

interface Started {
  readonly status: WalletAutomationReindexAssetResult['status'];
  readonly existing?: string | undefined;
}

async function startUnlessPresent(
  context: OperationContext,
  { wallet, chain: { caip2 }, assetAddress }: Subject,
  { rawBalance, newest }: Holding,
): Promise<Started> {
  if (rawBalance === undefined) return { status: 'failed' };
  if (rawBalance === 0n) return { status: 'skipped_zero_balance' };
  const asset = { walletId: wallet.id, caip2, assetAddress };
  const match = await matchingAttachment(context, asset);
  if (match === undefined) return { status: 'skipped_no_match' };
  const existing = await existingExecution(context, asset, newest);
  if (existing !== undefined) return { status: 'skipped_existing_execution', existing };
  const id = await startExecution(context, match, {
    ...asset,
    appId: context.app.id,
    rawAmount: rawBalance,
    transferKey: newest?.key ?? `reindex:${context.ids.cuid2()}`,
    transactionHash: newest?.hash ?? `reindex:${wallet.id}`,
    blockNumber: String(newest?.blockNumber ?? 0n),
  });
  if (id !== undefined) return { status: 'submitted' };
  return {
    status: 'skipped_existing_execution',
    existing: await existingExecution(context, asset, newest),
  };
}

/**
 * Returns the open execution for the asset, or the execution that handled the newest deposit. Undefined if there is
 * neither.
 */
async function existingExecution(
  { em }: OperationContext,
  {
    walletId,
    caip2,
    assetAddress,
  }: Pick<Parameters<typeof matchingAttachment>[1], 'walletId' | 'caip2' | 'assetAddress'>,
  newest: ChainTransfer | undefined,
): Promise<string | undefined> {
  const row = await em
    .getKysely<Tables>()
    .selectFrom('wallet_automation_executions')
    .select('id')
    .where('wallet_id', '=', walletId)
    .where('caip2', '=', caip2)
    .where((where) =>
      where.or([
        where.and([
          where('asset_address', '=', assetAddress),
          where('status', 'in', ['pending', 'submitted']),
        ]),
        ...(newest === undefined ? [] : [where('transfer_key', '=', newest.key)]),
      ]),
    )
    .orderBy('created_at_ms', 'desc')
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

async function readSubject(
  context: Pick<OperationContext, 'app' | 'em'>,
  body: ReindexWalletAutomationRequest,
): Promise<Subject> {
  const { wallet_id: id, deposit_address: address, chain: name, caip2, asset_address: asset } = body;
  if ((id === undefined) === (address === undefined)) {
    throw invalidField('/wallet_id', 'expected either `wallet_id` or `deposit_address`');
  }
  if ((name === undefined) === (caip2 === undefined)) {
    throw invalidField('/caip2', 'expected either `caip2` or `chain`');
  }
  const chain = name === undefined ? chainOfCaip2(knownCaip2(caip2!)) : chainNamed(name);
  if (chain === undefined) {
    const [field, given] = name === undefined ? ['/caip2', caip2] : ['/chain', name];
    throw invalidField(field, `expected a known chain, got \`${given}\``);
  }
  const wallet = await walletOf(context, { id, address });
  if (wallet.chain_type !== chain.chainType) {
    throw invalidField(name === undefined ? '/caip2' : '/chain', `the wallet is not on \`${chain.name}\``);
  }
  const assetAddress = addressOn(chain, asset, '/asset_address');
  return { wallet, chain, caip2: caip2 ?? wireCaip2(chain.caip2), assetAddress };
}

async function walletOf(
  context: Pick<OperationContext, 'app' | 'em'>,
  { id, address }: { readonly id: string | undefined; readonly address: string | undefined },
): Promise<WalletRow> {
  try {
    if (id !== undefined) return await findWallet(context, id);
    return await findWalletByAddress(context, normalizeAddress(address!));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'not_found') throw error;
    const field = id === undefined ? 'deposit_address' : 'wallet_id';
    throw invalidField(`/${field}`, `expected a wallet of this app, got \`${id ?? address}\``);
  }
}

// The API has names for Tron's networks, but our ids of these chains contain the id of the genesis block.
const tronNetworks: Readonly<Record<string, string>> = {
  'tron:mainnet': 'tron:0x2b6653dc',
  'tron:nile': 'tron:0xcd8690dc',
};

function knownCaip2(caip2: string): string {
  return tronNetworks[caip2] ?? caip2;
}

function wireCaip2(caip2: string): string {
  return Object.keys(tronNetworks).find((name) => tronNetworks[name] === caip2) ?? caip2;
}
