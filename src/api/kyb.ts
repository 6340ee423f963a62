import {
  type PolledCustomer,
  pollCustomers,
  storeAll,
} from '../domain/money/fiat-customers/customer-snapshot.ts';
import { kybView, tosView } from '../domain/money/fiat-customers/find-customer.ts';
import {
  type AskedCustomer,
  askForOrganizationLinks,
  storePrepared,
  submitOrganization,
} from '../domain/money/fiat-customers/verify-customer.ts';
import type { PlannedHandler } from '../ports/operation-context.ts';

export const listOrganizationKyb: PlannedHandler<'listOrganizationKyb', PolledCustomer[]> = {
  plan: ({ path }, context) => pollCustomers(context, { type: 'organization', id: path.organization_id }),
  run: async (_, context, planned) => {
    const customers = await storeAll(context, planned);
    return { kyb_statuses: customers.map((customer) => kybView(customer)), next_cursor: null };
  },
};

export const initiateOrganizationKybLinks: PlannedHandler<'initiateOrganizationKybLinks', AskedCustomer> = {
  plan: ({ path, body }, context) =>
    askForOrganizationLinks(context, path.organization_id, body, ['terms', 'verification']),
  run: async (_, context, planned) => {
    const { customer, links } = await storePrepared(context, planned);
    return kybView(customer, links);
  },
};

export const submitOrganizationKyb: PlannedHandler<'submitOrganizationKyb', AskedCustomer> = {
  plan: ({ path, body }, context) => submitOrganization(context, path.organization_id, body),
  run: async (_, context, planned) => kybView((await storePrepared(context, planned)).customer),
};

export const initiateOrganizationKybTos: PlannedHandler<'initiateOrganizationKybTos', AskedCustomer> = {
  plan: ({ path, body }, context) => askForOrganizationLinks(context, path.organization_id, body, ['terms']),
  run: async (_, context, planned) => {
    const { customer, links } = await storePrepared(context, planned);
    return tosView(customer, links);
  },
};
