import type { CreateKeyQuorumRequest } from '../src/generated/schemas.ts';
import { aliceKey, bobKey, carolKey } from './authorization-keys.ts';

/** Alice's key, or Alice as a user: both use her wallets. The id of the user is added when it is created. */
export const aliceQuorum = {
  display_name: 'Alice',
  public_keys: [aliceKey.publicKey],
  authorization_threshold: 1,
} satisfies CreateKeyQuorumRequest;

export const bobQuorum = {
  display_name: 'Bob',
  public_keys: [bobKey.publicKey],
  authorization_threshold: 1,
} satisfies CreateKeyQuorumRequest;

/** Any two of Alice, Bob and Carol. */
export const treasuryQuorum = {
  display_name: 'Treasury',
  public_keys: [aliceKey.publicKey, bobKey.publicKey, carolKey.publicKey],
  authorization_threshold: 2,
} satisfies CreateKeyQuorumRequest;
