import {
  type PolledCustomer,
  pollCustomers,
  storeAll,
} from '../domain/money/fiat-customers/customer-snapshot.ts';
import { kycView, tosView } from '../domain/money/fiat-customers/find-customer.ts';
import {
  type AskedCustomer,
  askForUserLinks,
  storePrepared,
  submitUser,
} from '../domain/money/fiat-customers/verify-customer.ts';
import type { PlannedHandler } from '../ports/operation-context.ts';

export const listUserKyc: PlannedHandler<'listUserKyc', PolledCustomer[]> = {
  plan: ({ path }, context) => pollCustomers(context, { type: 'user', id: path.user_id }),
  run: async (_, context, planned) => {
    const customers = await storeAll(context, planned);
    return { kyc_statuses: customers.map((customer) => kycView(customer)), next_cursor: null };
  },
};

export const initiateUserKycLinks: PlannedHandler<'initiateUserKycLinks', AskedCustomer> = {
  plan: ({ path, body }, context) => askForUserLinks(context, path.user_id, body, ['terms', 'verification']),
  run: async (_, context, planned) => {
    const { customer, links } = await storePrepared(context, planned);
    return kycView(customer, links);
  },
};

export const submitUserKyc: PlannedHandler<'submitUserKyc', AskedCustomer> = {
  plan: ({ path, body }, context) => submitUser(context, path.user_id, body),
  run: async (_, context, planned) => kycView((await storePrepared(context, planned)).customer),
};

export const initiateUserKycTos: PlannedHandler<'initiateUserKycTos', AskedCustomer> = {
  plan: ({ path, body }, context) => askForUserLinks(context, path.user_id, body, ['terms']),
  run: async (_, context, planned) => {
    const { customer, links } = await storePrepared(context, planned);
    return tosView(customer, links);
  },
};
