import type { BankAccountOrder, FiatProvider, FiatRefusal, RegisteredBankAccount } from '../../ports/fiat.ts';
import {
  type BridgeClient,
  type BridgeObject,
  objectOf,
  refusal,
  requireSame,
  requireText,
  requireValue,
  textOf,
} from './client.ts';

/** Returns the methods for the bank accounts that receive payouts. */
export function bridgeBankAccounts(
  client: BridgeClient,
): Pick<FiatProvider, 'registerBankAccount' | 'removeBankAccount'> {
  return {
    registerBankAccount: (order) => register(client, order),
    async removeBankAccount(customerId, id) {
      const answer = await client.delete(['customers', customerId, 'external_accounts', id]);
      if (!('refusal' in answer) || answer.refusal.status !== 404) requireValue(answer);
    },
  };
}

async function register(
  client: BridgeClient,
  order: BankAccountOrder,
): Promise<RegisteredBankAccount | FiatRefusal> {
  const { customerId, account, address } = order;
  if (account.type === 'swift' && address === undefined) {
    return { fault: 'data', pointer: '/address', message: 'expected an address: the provider requires one' };
  }
  const path = ['customers', customerId, 'external_accounts'];
  const answer = await client.post(path, bodyOf(order), order.key);
  if ('value' in answer) return readBankAccount(answer.value, customerId);
  const { code, existingId } = answer.refusal;
  // The service has only one account for the same account numbers of a customer, whatever the idempotency key is.
  if (code === 'duplicate_external_account' && existingId !== undefined) {
    return readBankAccount(requireValue(await client.get([...path, existingId])), customerId);
  }
  if (answer.refusal.status === 404) return refusal(answer.refusal, 'customer');
  return refusal(answer.refusal, 'data', (member) => pointerOf(account.type, member));
}

function readBankAccount(account: BridgeObject, customerId: string): RegisteredBankAccount {
  requireSame(account, 'customer_id', customerId);
  const last4 =
    textOf(objectOf(account, 'account'), 'last_4') ??
    textOf(objectOf(account, 'iban'), 'last_4') ??
    textOf(account, 'last_4');
  return { id: requireText(account, 'id'), last4, bankName: textOf(account, 'bank_name') };
}

function bodyOf(order: BankAccountOrder): object {
  const { ownerName, bankName, currency, account, address } = order;
  return {
    account_owner_name: ownerName,
    currency,
    ...(bankName === undefined ? {} : { bank_name: bankName }),
    ...(address === undefined ? {} : { address }),
    ...ownerOf(order),
    ...numbersOf(account, address),
  };
}

/**
 * Returns the members that name the owner of a bank account. The service needs them for transfers in euros, pounds and
 * by SWIFT.
 *
 * CHOICE: the owner is the customer itself, a person or a business. The last word of a person's name counts as the last
 * name.
 */
function ownerOf({ ownerKind, ownerName, account }: BankAccountOrder): object {
  if (account.type === 'us' || account.type === 'pix') return {};
  if (ownerKind === 'business') return { account_owner_type: 'business', business_name: ownerName };
  const words = ownerName.trim().split(/\s+/);
  const last = words.at(-1) ?? ownerName;
  const first = words.length > 1 ? words.slice(0, -1).join(' ') : last;
  return { account_owner_type: 'individual', first_name: first, last_name: last };
}

function numbersOf(account: BankAccountOrder['account'], address: BankAccountOrder['address']): object {
  switch (account.type) {
    case 'us': {
      const { account_number, routing_number, checking_or_savings } = account;
      const kind = checking_or_savings === undefined ? {} : { checking_or_savings };
      return { account_type: 'us', account: { account_number, routing_number, ...kind } };
    }
    case 'gb': {
      const { account_number, sort_code } = account;
      return { account_type: 'gb', account: { account_number, sort_code } };
    }
    case 'iban': {
      const { account_number, bic, country } = account;
      return { account_type: 'iban', iban: { account_number, bic, country } };
    }
    case 'pix': {
      const { pix_key, br_code, document_number } = account;
      const owner = document_number === undefined ? {} : { document_number };
      return {
        account_type: 'pix',
        ...(pix_key === undefined ? { br_code: { br_code, ...owner } } : { pix_key: { pix_key, ...owner } }),
      };
    }
    case 'swift': {
      const { account_number, bic, country, category, purpose_of_funds, short_business_description } =
        account;
      const isIban = country !== undefined && IBAN.test(account_number);
      return {
        account_type: isIban ? 'iban' : 'unknown',
        swift: {
          account: { account_number, bic, ...(isIban ? { country } : {}) },
          // CHOICE: requests contain no address of the bank, so the service receives the owner's address instead.
          ...{ address, category, purpose_of_funds, short_business_description },
        },
      };
    }
  }
}

const IBAN = /^[A-Z]{2}\d{2}[0-9A-Z]{11,30}$/;

const ourNames: Readonly<Record<string, string>> = {
  account_owner_name: '/account_owner_name',
  bank_name: '/bank_name',
  currency: '/currency',
};

/** Converts a member such as `iban.bic` or `address.state` to a pointer into the request. */
function pointerOf(type: BankAccountOrder['account']['type'], member: string): string | undefined {
  const [first = '', ...rest] = member.split('.');
  if (first === 'address') return ['/address', ...rest].join('/');
  if (Object.hasOwn(ourNames, first)) return ourNames[first];
  const isAccount = ['account', 'iban', 'swift', 'pix_key', 'br_code'].includes(first);
  const name = rest.at(-1);
  if (!isAccount) return undefined;
  return name === undefined || (type === 'swift' && name === 'account') ? '/account' : `/account/${name}`;
}
