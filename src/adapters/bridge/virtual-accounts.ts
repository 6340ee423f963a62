import type {
  FiatDepositInstructions,
  FiatProvider,
  FiatRefusal,
  VirtualAccount,
  VirtualAccountOrder,
} from '../../ports/fiat.ts';
import {
  objectOf,
  plainDecimal,
  refusal,
  requireFee,
  requireSame,
  requireText,
  requireValue,
  textOf,
  textsOf,
  unusable,
  valueIfFound,
} from './answers.ts';
import type { BridgeClient, BridgeObject } from './client.ts';
import { routeOf } from './customers.ts';

type VirtualAccounts = Pick<FiatProvider, 'openVirtualAccount' | 'virtualAccount' | 'closeVirtualAccount'>;

/** Bank accounts whose deposits the service sends to wallets. */
export function bridgeVirtualAccounts(client: BridgeClient): VirtualAccounts {
  const find = async (customerId: string, id: string): Promise<VirtualAccount | undefined> => {
    const found = valueIfFound(await client.get(pathOf(customerId, id)));
    return found && readVirtualAccount(found, customerId, id);
  };
  return {
    openVirtualAccount: (order) => open(client, order),
    virtualAccount: find,
    async closeVirtualAccount(customerId, id) {
      const path = [...pathOf(customerId, id), 'deactivate'];
      const answer = await client.post(path, {}, `deactivate ${customerId} ${id}`);
      if ('value' in answer || answer.refusal.status === 404) return;
      // The account may have been closed before.
      if ((await find(customerId, id))?.status === 'activated') requireValue(answer);
    },
  };
}

function pathOf(customerId: string, id: string): readonly string[] {
  return ['customers', customerId, 'virtual_accounts', id];
}

async function open(client: BridgeClient, order: VirtualAccountOrder): Promise<VirtualAccount | FiatRefusal> {
  const { key, customerId, currency, destination } = order;
  const fee = plainDecimal(order.developerFeePercent);
  const route = routeOf(destination);
  if (route === undefined) {
    return { fault: 'pair', message: 'the provider does not deliver this asset on this chain' };
  }
  const body = {
    source: { currency },
    destination: { ...route, address: destination.address },
    ...(fee === '0' ? {} : { developer_fee_percent: fee }),
  };
  const answer = await client.post(['customers', customerId, 'virtual_accounts'], body, key);
  if ('value' in answer) return readOpened(answer.value, order);
  if (answer.refusal.status === 404) return refusal(answer.refusal, 'customer');
  const isFee = answer.refusal.members.includes('developer_fee_percent');
  if (isFee) return refusal(answer.refusal, 'data', () => '/developer_fee_percent');
  // For a known customer, the service refuses only the pair of currency and asset.
  return refusal(answer.refusal, 'pair');
}

/**
 * INVARIANT: a customer never receives instructions for an account whose deposits go to another address, or have
 * another fee.
 */
function readOpened(account: BridgeObject, order: VirtualAccountOrder): VirtualAccount {
  const { customerId, developerFeePercent } = order;
  const { address } = order.destination;
  requireFee(account, 'developer_fee_percent', developerFeePercent);
  const said = textOf(objectOf(account, 'destination'), 'address');
  const isSame =
    said?.startsWith('0x') === true ? said.toLowerCase() === address.toLowerCase() : said === address;
  if (!isSame) throw unusable('its account delivers to another address');
  return readVirtualAccount(account, customerId, requireText(account, 'id'));
}

function readVirtualAccount(account: BridgeObject, customerId: string, id: string): VirtualAccount {
  requireSame(account, 'id', id);
  // The service omits it for accounts that it has just opened.
  if (account.customer_id !== undefined) requireSame(account, 'customer_id', customerId);
  const status = requireText(account, 'status');
  if (status !== 'activated' && status !== 'deactivated') throw unusable('expected the status of an account');
  const said = objectOf(account, 'source_deposit_instructions');
  const instructions = instructionsOf(said);
  return {
    ...{ id, status, currency: requireText(said, 'currency') },
    paymentRails: railsOf(said),
    instructions:
      Object.keys(instructions).length === 0 ? null : { ...instructions, payment_rails: railsOf(said) },
  };
}

function railsOf(said: BridgeObject): string[] {
  const rails = textsOf(said, 'payment_rails');
  const only = textOf(said, 'payment_rail');
  return rails.length > 0 || only === undefined ? [...rails] : [only];
}

const names = [
  ...['bank_name', 'bank_address', 'bank_routing_number', 'bank_account_number', 'bank_beneficiary_name'],
  ...['bank_beneficiary_address', 'iban', 'bic', 'account_holder_name', 'account_number', 'sort_code'],
  ...['clabe', 'br_code', 'bre_b_key', 'deposit_message'],
] as const satisfies readonly (keyof FiatDepositInstructions)[];

function instructionsOf(said: BridgeObject): FiatDepositInstructions {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = textOf(said, name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
