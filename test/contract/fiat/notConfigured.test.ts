import { expect, test } from 'vitest';
import { noFiatProviders } from '../../../src/adapters/absent.ts';
import { call, refusal } from '../../support/call.ts';
import { verifiedOrganization, verifiedUser, walletOf } from '../../support/fiat/customers.ts';
import { startSandbox } from '../../support/sandbox.ts';
import { documentedOperations, exampleBodies } from '../documented-operations.ts';

test('without the provider, what needs it is not supported, and what is stored is still read', async () => {
  await using sandbox = await startSandbox();
  const user_id = await verifiedUser(sandbox);
  const organization_id = await verifiedOrganization(sandbox);
  const wallet = await walletOf(sandbox, user_id);
  Object.assign(sandbox.services, { fiatProviders: noFiatProviders });
  const path = { user_id, organization_id, wallet_id: wallet.id };
  const operations = [
    ...(['initiateUserKycTos', 'initiateUserKycLinks', 'submitUserKyc'] as const),
    ...(['initiateOrganizationKybTos', 'initiateOrganizationKybLinks', 'submitOrganizationKyb'] as const),
    ...(['createUserExternalFiatAccount', 'createOrganizationExternalFiatAccount'] as const),
    'createFiatDepositAccount' as const,
  ];
  for (const id of operations) {
    const documented = documentedOperations.find(({ operationId }) => operationId === id)!;
    const [example] = exampleBodies(documented) as object[];
    const body = { ...example, provider: 'bridge', environment: 'sandbox' };
    expect(await refusal(sandbox, id, { path, body }), id).toMatchObject({
      status: 400,
      body: {
        code: 'not_supported',
        error: '/provider: the provider `bridge` is not configured here for `sandbox`',
      },
    });
  }
  const { body: user } = await call(sandbox, 'listUserKyc', { path: { user_id } });
  expect(user.kyc_statuses).toMatchObject([{ status: 'active' }]);
  const { body: organization } = await call(sandbox, 'listOrganizationKyb', { path: { organization_id } });
  expect(organization.kyb_statuses).toMatchObject([{ status: 'active' }]);
});
