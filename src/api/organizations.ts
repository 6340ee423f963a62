import {
  createOrganization as createOrganizationVerb,
  deleteOrganization as deleteOrganizationVerb,
  findOrganization,
  listOrganizations as listOrganizationsVerb,
  organizationView,
  updateOrganization as updateOrganizationVerb,
} from '../domain/access/organizations/organization.ts';
import {
  bindOrganizationSecret,
  createOrganizationSecret as createOrganizationSecretVerb,
  listOrganizationSecrets as listOrganizationSecretsVerb,
  revokeOrganizationSecret as revokeOrganizationSecretVerb,
} from '../domain/access/organizations/organization-secrets.ts';
import type { Handler } from '../ports/operation-context.ts';

export const listOrganizations: Handler<'listOrganizations'> = async ({ query }, context) => {
  const { organizations, nextCursor } = await listOrganizationsVerb(context, query);
  return { data: organizations.map(organizationView), next_cursor: nextCursor };
};

export const createOrganization: Handler<'createOrganization'> = async ({ body }, context) =>
  organizationView(await createOrganizationVerb(context, body));

export const deleteOrganization: Handler<'deleteOrganization'> = async ({ path }, context) => {
  await deleteOrganizationVerb(context, path.organization_id);
  return undefined;
};

export const getOrganization: Handler<'getOrganization'> = async ({ path }, context) =>
  organizationView(await findOrganization(context, path.organization_id));

export const updateOrganization: Handler<'updateOrganization'> = async ({ path, body }, context) =>
  organizationView(await updateOrganizationVerb(context, path.organization_id, body));

export const revokeOrganizationSecret: Handler<'revokeOrganizationSecret'> = async (
  { path, body },
  context,
) => {
  await revokeOrganizationSecretVerb(context, path.organization_id, body.secret_id);
  return { success: true };
};

export const listOrganizationSecrets: Handler<'listOrganizationSecrets'> = async ({ path }, context) => ({
  data: await listOrganizationSecretsVerb(context, path.organization_id),
});

export const updateOrganizationSecretSigningKey: Handler<'updateOrganizationSecretSigningKey'> = async (
  { path, body },
  context,
) => {
  await bindOrganizationSecret(context, path.organization_id, body);
  return { success: true };
};

export const createOrganizationSecret: Handler<'createOrganizationSecret'> = async ({ path }, context) =>
  createOrganizationSecretVerb(context, path.organization_id);
