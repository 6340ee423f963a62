/** What the servers of the comparison accept; our own are told the same by their flags. */
export const credentials = {
  appId: 'benchapp0000000000000000b',
  appSecret: 'a_secret_that_only_the_benchmark_knows_0123456789',
};
