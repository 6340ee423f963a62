import type { CreateKeyQuorumRequest } from '../src/generated/schemas.ts';
import { aliceKey, bobKey, carolKey } from './authorization-keys.ts';

/** Any two of Alice, Bob and Carol. */
export const treasuryQuorum = {
  display_name: 'Treasury',
  public_keys: [aliceKey.publicKey, bobKey.publicKey, carolKey.publicKey],
  authorization_threshold: 2,
} satisfies CreateKeyQuorumRequest;
