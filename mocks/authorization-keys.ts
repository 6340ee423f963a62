/** A P-256 key pair that signs requests. */
export interface AuthorizationKey {
  /** Base64 of the PKCS#8 DER, the format that clients use. */
  readonly privateKey: string;
  /** Base64 of the SubjectPublicKeyInfo DER, the format of the API. */
  readonly publicKey: string;
}

// These private keys are public: use them only for test data.

export const aliceKey: AuthorizationKey = {
  privateKey:
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglN0Mk7QMVrGG1GU2mpVocclYN/1aBNbYB+gY52CJP5+hRANCAASnLeCv3LxPMIES39hgvKvDlS6IuNLUjlkIg/h1rrwLFMRZjpaWTiNJ/8YdEKmLFh2KHMgyPLVDth0xdWnCR0FA',
  publicKey:
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEpy3gr9y8TzCBEt/YYLyrw5UuiLjS1I5ZCIP4da68CxTEWY6Wlk4jSf/GHRCpixYdihzIMjy1Q7YdMXVpwkdBQA==',
};

export const bobKey: AuthorizationKey = {
  privateKey:
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnlXtC2lbpzEYjrPAJtGYOiPGFpMu/0J8IMjWrzPTmnyhRANCAATIMQdYZThsF/kH7Vpl+VoMhvRVAEyL7ex1LY6StsiAV+SJK8KfRho6EBWINnwRFschwLsrC4GLgeOl4ByCPeWy',
  publicKey:
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyDEHWGU4bBf5B+1aZflaDIb0VQBMi+3sdS2OkrbIgFfkiSvCn0YaOhAViDZ8ERbHIcC7KwuBi4HjpeAcgj3lsg==',
};

export const carolKey: AuthorizationKey = {
  privateKey:
    'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgOVZJvL1G4QmpmVBXGbrefQQIVCBsRtO8b8rm0N3TwYGhRANCAARgkzJpVmar80Sx8EScbIHmVeHE3CrKobtc5MJy0XPIM3MibtGPq2d7h1Cl4crVjfRaXQbIM4p6lB4jnEtmZYHv',
  publicKey:
    'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYJMyaVZmq/NEsfBEnGyB5lXhxNwqyqG7XOTCctFzyDNzIm7Rj6tne4dQpeHK1Y30Wl0GyDOKepQeI5xLZmWB7w==',
};

/** Whose each of these keys is, by public key. */
export const keyNames: ReadonlyMap<string, string> = new Map([
  [aliceKey.publicKey, 'Alice'],
  [bobKey.publicKey, 'Bob'],
  [carolKey.publicKey, 'Carol'],
]);
