import { WalletEntity } from '../../domain/wallets/wallets/wallet.entity.ts';
import { invalidField, notFound } from '../../errors.ts';
import type { ControlContext } from '../control-plane.ts';
import type { AddSandboxFaultRequest } from '../generated/schemas.ts';
import { requireSimulated } from '../require-simulated.ts';
import type { Selection } from './fault-rules.ts';

type SelectionContext = Pick<ControlContext, 'chains' | 'events' | 'read' | 'appId'>;

/**
 * What a rule selects by. Rules for requests compare what clients send, so their wallet need not exist yet.
 *
 * @throws ApiError not_found for an unknown wallet; invalid_data for an unknown chain or event type.
 */
export async function selectionOf(
  { effect, chain, event_type: type, wallet_id: walletId }: AddSandboxFaultRequest,
  context: SelectionContext,
): Promise<Selection> {
  const isRequest = !/^(transaction|webhook)_/.test(effect);
  const found = walletId === undefined ? null : await findAnyWallet(walletId, context);
  if (isRequest) return walletId === undefined ? {} : { walletNames: namesOf(walletId, found) };
  if (walletId !== undefined && found === null) throw notFound('Wallet');
  const wallet = found ?? undefined;
  return {
    chain: chain === undefined ? undefined : requireSimulated(context.chains, chain),
    walletId: wallet?.id,
    address: wallet?.address.startsWith('0x') === true ? wallet.address.toLowerCase() : wallet?.address,
    eventType: type === undefined ? undefined : await knownType(type, context),
  };
}

const EXTERNAL_PREFIX = 'ext_wal_';

/** A wallet of any app by its id; by an external id only of the app that the sandbox was started with. */
async function findAnyWallet(walletId: string, { read, appId }: SelectionContext) {
  const where = walletId.startsWith(EXTERNAL_PREFIX)
    ? { appId, externalId: walletId.slice(EXTERNAL_PREFIX.length) }
    : { id: walletId };
  return read((em) => em.findOne(WalletEntity, where));
}

function namesOf(
  given: string,
  wallet: { readonly id: string; readonly externalId?: string | null | undefined } | null,
): readonly string[] {
  const { id = given, externalId } = wallet ?? {};
  const external = externalId == null ? [] : [`${EXTERNAL_PREFIX}${externalId}`];
  return [...new Set([given, id, ...external])];
}

async function knownType(named: string, { events }: SelectionContext): Promise<string> {
  const type = events.readType(named);
  if ((await events.types()).includes(type)) return type;
  throw invalidField('/event_type', await events.unknownType(named));
}
