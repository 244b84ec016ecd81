import { ZxcvbnFactory, type ZxcvbnResult } from '@zxcvbn-ts/core';
import { adjacencyGraphs, dictionary as common } from '@zxcvbn-ts/language-common';
import { dictionary as english, translations } from '@zxcvbn-ts/language-en';

/** Whose password it is to be. */
export interface Person {
  email: string;
  name: string;
}

export type PasswordPolicy = ReturnType<typeof createPasswordPolicy>;

/** Code points. NIST SP 800-63B-4 §3.1.1.2 and ASVS 5.0 6.2.9 ask for 64 or more; this keeps hashing cheap. */
const maxLength = 128;
/** Of 0 to 4: some 10^8 guesses. */
const leastScore = 3;
const serviceName = 'content platform';

/**
 * What of a password is looked at, and how many readings of its signs as letters. With the library's own limits 128
 * digits and signs take seconds of processor time, in which nothing else happens; with these the costliest take some
 * 25 ms for each of two looks, twice that until the code has run for a while. When the first 32 characters are too easy, it does not matter
 * what follows.
 */
const effort = { maxLength: 32, l33tMaxSubstitutions: 3 };

const ownWordsReason = 'It has your name, your address or the name of this service in it.';
const advice = 'Three or four words that have nothing to do with each other are a good choice.';

/** What the person and the service are called, whole and in parts, as it is usually written: ASVS 5.0 6.1.2, 6.2.11. */
function ownWords({ email, name }: Person): string[] {
  const phrases = [serviceName, name, email, ...email.split('@')].map((phrase) => phrase.normalize('NFC'));
  const plain = phrases.map((phrase) => phrase.normalize('NFD').replace(/\p{M}/gu, ''));
  const words = [...phrases, ...plain].flatMap((phrase) => {
    const parts = phrase.split(/[^\p{L}\p{N}]+/u);
    return [phrase, ...parts, ...['', ' ', '-', '_', '.'].map((separator) => parts.join(separator))];
  });
  return [...new Set(words)].filter((word) => word.length > 2);
}

/**
 * Without what stands between the words, and fullwidth letters as the usual ones: to zxcvbn each sign is a word of its
 * own, and whatever has three parts is good. Empty when the signs are more than separators.
 */
function wordsTogether(password: string): string {
  const together = password.normalize('NFKC').replace(/[^\p{L}\p{M}\p{N}]+/gu, '');
  return [...together].length * 4 >= [...password].length * 3 ? together : '';
}

function reasonOf({ sequence, feedback: { warning, suggestions } }: ZxcvbnResult): string {
  const own = sequence.some((match) => match['dictionaryName'] === 'userInputs');
  return own ? ownWordsReason : (warning ?? suggestions.at(-1)!);
}

/**
 * Which passwords may be chosen: `minLength` code points or more, of any kind (NIST SP 800-63B-4 §3.1.1.2 and ASVS 5.0
 * 6.2.1, 6.2.5: no rules on what they are made of), and none that is soon guessed (6.2.4, 6.2.11). What is counted and
 * looked at is the form that is stored, NFC.
 */
export function createPasswordPolicy(minLength: number) {
  const zxcvbn = new ZxcvbnFactory({
    dictionary: { ...common, ...english },
    graphs: adjacencyGraphs,
    translations,
    ...effort,
  });

  return {
    /**
     * What is wrong with the password, as a sentence that begins with a verb (`Must have …`) and says what to do
     * instead, which §3.1.1.2 wants; undefined when it can be taken.
     */
    complaint(password: string, person: Person): string | undefined {
      const normal = password.normalize('NFC');
      const length = [...normal].length;
      if (length < minLength || length > maxLength)
        return `Must have ${minLength} to ${maxLength} characters; this has ${length}.`;
      const own = ownWords(person);
      const looks = [wordsTogether(normal), normal].filter(Boolean);
      const weak = looks.map((look) => zxcvbn.check(look, own)).find(({ score }) => score < leastScore);
      return weak && `Is too easy to guess. ${reasonOf(weak)} ${advice}`;
    },
  };
}
