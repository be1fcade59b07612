//! Stop-word lists, one for each language that is stemmed.
//!
//! Queries drop stop words. They are also the most frequent words of a language, so language detection counts them.
//! Each list is short on purpose: a word that may carry the meaning of a question does not belong here.

use super::language::Language;

/// The stop words of a language, separated by white space.
#[rustfmt::skip]
#[expect(clippy::too_many_lines, reason = "lists of words are longer than code and simpler")]
pub(super) fn stop_words(language: Language) -> &'static str {
    match language {
        Language::English => "
            a about after again all also am an and any are as at be because been before being but
            by can could did do does doing don during each few for from further had has have having
            he her here hers him his how i if in into is isn it its itself just let like me might
            more most must my no nor not now of off on once only or other ought our ours out over
            own please said same say says shall she should show so some such tell than that the
            their theirs them then there these they this those through to too under until up upon us
            very was wasn we were weren what when where which while who whom whose why will with won
            would you your yours",
        Language::Arabic => "
            في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين كيف لماذا كم هل هو هي
            هم أن إن كان كانت يكون تكون قد لقد لا لم لن ليس ليست أو أم ثم حتى إذا لو كل بعض أي بين بعد قبل
            عند منذ خلال حول غير و أنا نحن أنت كما لكن بل له لها لهم فيه فيها منه منها عليه عليها به بها
            أيضا بسبب",
        Language::Armenian => "
            և ու է են եմ ես եք էր էին որ որը որոնք ինչ ինչպես երբ որտեղ ով ինչու այս այդ այն մի մեկ ոչ չէ
            չի համար մասին հետ մեջ վրա բայց կամ եթե նաև պետք իր իրենց նրա նրանց իսկ ըստ հետո առաջ պիտի",
        Language::Catalan => "
            el la els les l un una uns unes de del dels d a al als en amb per i o u que què qui quin
            quina quins quines com quan on no ni és són era eren ser ha han he hi ho es s se li lo seu
            seva seus seves aquest aquesta aquests aquestes això aquell aquella més molt però si també
            entre sobre sense fins des tot tota tots totes altres mateix cada perquè està",
        Language::Czech => "
            a i o u v ve na do z ze s se k ke po pro při od za před mezi nad pod bez že je jsou jsem
            jsi jsme jste byl byla bylo byli být bude budou není co kdo jak kdy kde proč který která
            které kteří jaký jaká jaké ten ta to ti ty tento tato toto ale nebo ani když aby jako
            jeho její jejich si mu mi mě my vy on ona ono oni by už jen také tak než podle může",
        Language::Danish => "
            og i at det den de der er en et til på som med for af ikke har var han hun jeg vi du sig
            sin sit sine men om hvad hvem hvor hvornår hvorfor hvordan hvilken hvilket hvilke eller
            fra ved kan skal vil blev bliver være været havde også efter under over ud når dette
            denne disse deres hans hendes dem os mig dig man så nogen noget meget mod uden mellem",
        Language::Dutch => "
            de het een en van in op te is dat die voor met zijn was er aan niet ook als bij door om
            uit naar over maar of nog wel dan dit deze hij zij ze wij we je u ik mijn hun haar hem
            wat wie waar wanneer waarom hoe welke welk worden wordt werd werden hebben heeft had kan
            kunnen zal zullen moet moeten tot geen meer zo al tegen tussen onder zonder na",
        Language::Esperanto => "
            la kaj de en al por kun pri el sur per ne estas estis estos esti ke kiu kiuj kio kiel
            kiam kie kial kies tiu tiuj tio ĉi ĝi ili li ŝi mi vi ni oni aŭ sed se ol pli plej da ĝis
            inter sub post antaŭ tra sen ankaŭ nur tre ĉiu ĉiuj ĉio iu iuj sia sian lia ŝia ilia
            havas povas",
        Language::Estonian => "
            ja on ei see et oli oma mis kes kui ka ning või aga selle seda need nende neid ta tema
            nad me meie te teie ma mina sa kas kus millal miks kuidas milline mille mida kelle keda
            nii siis ainult veel juba kuid sest olla olid ole olnud pole peab võib saab kõik iga mõne
            pärast enne üle alla vahel ilma koos poolt kohta",
        Language::Finnish => "
            ja on ei että se oli ovat olla olivat ole en et emme ette eivät mutta tai sekä kun jos
            kuin niin myös hän he me te minä sinä joka jotka jonka joita jossa mikä mitä missä milloin
            miksi miten kuka ketä kenen mistä tämä tämän tätä nämä ne sen sitä siitä niiden niitä
            hänen heidän oma omaan vain vielä jo kanssa ilman ennen jälkeen noin välillä mukaan sitten
            koska voi pitää",
        Language::French => "
            le la les l un une des de du d à au aux en dans sur sous par pour avec sans et ou où mais
            donc ni que qu qui quoi quel quelle quels quelles comment quand pourquoi ce c cet cette
            ces il elle ils elles on nous vous je j tu se s sa son ses leur leurs mon ma mes notre nos
            votre vos y ne n pas plus est sont était étaient être été a ai ont avait avoir fut si
            comme aussi entre vers chez dont tout tous toute toutes même cela ça lui eux m t",
        Language::German => "
            der die das des dem den ein eine einer eines einem einen und oder aber ist sind war waren
            sein wird werden wurde wurden hat haben hatte hatten in im an am auf aus bei mit von vom
            zu zum zur nach für über unter durch gegen ohne um vor nicht kein keine auch nur noch als
            wie wenn dass daß ob was wer wen wem wo wann warum weshalb welche welcher welches welchen
            ich du er sie es wir ihr sich mich mir uns ihm ihn ihnen dieser diese dieses diesem diesen
            so sehr kann können soll muss müssen bis seit zwischen man mein dein seine seiner ihre ihrer
            ihren",
        Language::Greek => "
            ο η το οι τα του της των τον την τους τις και ή να θα σε στο στη στην στον στους στις στα
            από με για ως προς κατά μετά πριν χωρίς μέχρι που πως πώς τι ποιος ποια ποιο ποιοι ποιες
            πότε πού γιατί πόσο πόσα είναι ήταν είχε έχει έχουν δεν μη μην αλλά αν όταν ότι όπως αυτό
            αυτός αυτή αυτά ένα ένας μια μία κάθε όλα όλοι επίσης μου σου μας σας",
        Language::Hindi => "
            का के की को में से पर और है हैं था थी थे हो होता होती होते हुआ हुई हुए ने कि यह ये वह वे इस
            उस इन उन इसके उसके इसकी उसकी जो जिस जिसे तो भी ही नहीं न या एक तक लिए साथ बाद पहले द्वारा क्या
            कौन कब कहाँ क्यों कैसे कितना कितने कितनी किस किसे किसने किया करने करता करते कर गया गई गए रहा रही
            रहे अपने अपना अपनी मैं हम आप",
        Language::Hungarian => "
            a az egy és hogy nem is van volt vannak voltak lesz meg de ha mert vagy mint csak már még
            ki mi mit mikor hol miért hogyan melyik milyen hány ez ezt azt ezek azok ő ők én te
            ti ön kell lehet minden el fel le be ra re ban ben között után előtt alatt mellett által
            szerint nélkül pedig sem se amely amelyek aki akik ami amit úgy így nagyon több sok",
        Language::Indonesian => "
            yang dan di ke dari dengan untuk pada adalah ini itu tidak dalam akan oleh sebagai juga
            atau ada telah sudah dapat bisa karena saat ia dia mereka kami kita saya anda apa siapa
            kapan mengapa bagaimana mana berapa tetapi namun jika bila maka agar lebih sangat seperti
            antara setelah sebelum hingga sampai para tersebut secara setiap harus belum masih hanya",
        Language::Italian => "
            il lo la i gli le l un uno una di del dello della dei degli delle d a al allo alla ai agli
            alle da dal dallo dalla dai dagli dalle in nel nello nella nei negli nelle su sul sullo
            sulla sui sugli sulle con per tra fra e ed o ma se che chi cosa quale quali come quando
            dove perché è sono era erano essere stato stata ha hanno aveva avere non più anche si ci
            vi ne mi ti lui lei loro noi voi io questo questa questi queste quello quella suo sua suoi
            sue ogni tutti tutte tutto",
        Language::Lithuanian => "
            ir yra buvo būti kad ar bei su be į iš ant prie per po nuo iki už apie dėl pagal tarp bet
            o ne nėra nei arba jei kai kaip kas ką kur kada kodėl koks kokia kokie kuris kuri kurie
            kurios kurį šis ši šie tas ta tai tie jis ji jie jos jo jų mes jūs aš tu savo taip pat
            tik dar jau turi gali labai visi visos kiekvienas kitų",
        Language::Nepali => "
            र को का की मा ले लाई बाट छ छन् थियो थिए हो हुन् हुन हुने भएको भएका भयो भने गर्न गर्ने गरेको गरी यो
            यस त्यो ती त्यस उनी उनले उनको यी जो जुन के किन कहिले कहाँ कसरी कसले कति तथा वा पनि नै मात्र तर सँग लागि
            एक अनि देखि सम्म अन्य प्रत्येक गरिने",
        Language::Norwegian => "
            og i at det den de der er en et ei til på som med for av ikke har var han hun jeg vi du
            seg sin sitt sine men om hva hvem hvor når hvorfor hvordan hvilken hvilket hvilke eller
            fra ved kan skal vil ble blir være vært hadde også etter under over ut dette denne disse
            deres hans hennes dem oss meg deg man så noen noe mye mot uten mellom enhver ingen",
        Language::Persian => "
            و در به از که این آن را با برای است بود هست شد شده می های ها تا یا هم نیز اما اگر چه چی
            کی کجا چرا چگونه چطور کدام چند بر هر همه دیگر خود باید شود شوند کرد کرده کند کنند دارد
            دارند داشت نیست نمی بین پس پیش بدون او آنها ما شما من یک روی زیر",
        Language::Polish => "
            i w we na z ze do o u po za od dla przez przy pod nad między bez oraz lub albo ale a że
            się nie jest są był była było były być będzie jak co kto kogo kiedy gdzie dlaczego który
            która które którzy których jaki jaka jakie ten ta to te tym tego tej jego jej ich go mu
            mi ja ty on ona ono my wy oni one czy tak tylko już jeszcze także też aby żeby może ma
            każdy każda",
        Language::Portuguese => "
            o a os as um uma uns umas de do da dos das em no na nos nas ao à aos às por pelo pela
            pelos pelas para com sem sob sobre entre até e ou mas que quem qual quais quando onde como
            porque é são foi foram era eram ser sido está estão tem têm tinha ter há não mais muito
            também se lhe lhes seu sua seus suas ele ela eles elas eu nós você vocês isto isso aquilo
            este esta estes estas esse essa esses essas já só cada todo toda todos todas",
        Language::Romanian => "
            și în la de pe cu din pentru prin spre sub peste între după fără până a al ai ale o un
            unei unui unor este sunt era erau fi fost va vor are au avea nu că să se îi își ce cine
            care cum când unde cât câți câte dar sau ori dacă mai foarte acest această aceste
            acești acel acea acele el ea ei ele eu tu noi voi lui lor său sa săi sale mi ți tot toate
            orice fiecare ca îl le",
        Language::Russian => "
            и в во на с со к ко о об по за из от до для при у не ни но а или что чтобы кто как когда
            где почему какой какая какое какие который которая которое которые это этот эта эти того
            тот та те то он она оно они мы вы я ты его ее их ему ей им был была было были быть есть
            будет бы же ли только уже еще также если так чем между под над через после перед без
            каждый все всех свой своих себя сколько",
        Language::Serbian => "
            i u na je su se da za od do iz sa s o po kao ili a ali što šta ko koji koja koje kojih
            kada kad gde gdje zašto kako koliko ovaj ova ovo ovi taj ta to ti oni ona on ono mi vi ja
            nije nisu bio bila bilo bili biti će bi ne li samo već još takođe također ako pri pod nad
            pre prije posle poslije između bez svako svaka svaki svi sve njegov njihov svoj svoje
            и у на је су се да за од до из са с о по као или а али што шта ко који која које којих
            када кад где зашто како колико овај ова ово ови тај та то ти они она он оно ми ви ја није
            нису био била било били бити ће би не ли само већ још такође ако при под над пре после
            између без свако свака сваки сви све његов њихов свој своје",
        Language::Spanish => "
            el la los las un una unos unas de del a al en con por para sin sobre entre hasta desde y e
            o u pero que qué quién quiénes cuál cuáles cuándo dónde cómo cuánto cuántos cuánta cuántas
            porque es son era eran fue fueron ser sido está están estaba ha han había haber hay no ni
            más muy también se le les lo su sus él ella ellos ellas yo tú nosotros usted ustedes me te
            nos mi mis este esta estos estas esto ese esa esos esas eso ya si sí como cuando donde todo
            toda todos todas",
        Language::Swedish => "
            och i att det den de som en ett är var av för på med till inte har han hon jag vi du ni
            sig sin sitt sina men om vad vem vilka vilken vilket när varför hur eller från vid kan
            ska skall vill blev blir vara varit hade också efter under över ut detta denna dessa deras
            hans hennes dem oss mig dig man så någon något mycket mot utan mellan där här då bara än
            varje",
        Language::Tamil => "
            ஒரு என்று என மற்றும் இந்த அந்த இது அது இதன் அதன் இவை அவை அவர் அவர்கள் நான் நாம் நீங்கள் என்ன
            யார் எப்போது எங்கே ஏன் எப்படி எந்த எது உள்ள உள்ளது இருந்து வேண்டும் அல்லது ஆனால் போன்ற மூலம் பற்றி
            கொண்டு வரை பின்னர் முன் தான் கூட மேலும் ஆகும் இல்லை எவரும் ஒவ்வொருவரும்",
        Language::Turkish => "
            ve bir bu da de ile için olarak olan çok daha en gibi kadar sonra önce her hiç ne kim nasıl
            neden niçin nerede nereye hangi kaç mi mı mu mü değil var yok ama fakat veya ya ki o şu
            onlar biz siz ben sen onun bunun ise eğer göre karşı üzere tarafından oldu olduğu idi
            ancak sadece bütün bazı diğer hem içinde üzerinde arasında herkes kendi",
        Language::Ukrainian => "
            і й та в у на з із зі до о об по за від для при не ні але а або що щоб хто як коли де чому
            який яка яке які це цей ця ці того той те то він вона воно вони ми ви я ти його її їх
            йому їй їм був була було були бути є буде би б же чи тільки вже ще також якщо так ніж між
            під над через після перед без кожен кожна кожний всі свій своїх себе скільки",
        Language::Yiddish => "
            דער די דאס דעם און אין אויף פון מיט צו פאר איז זענען זיינען געווען נישט ניט א אן אז וואס ווער
            ווען וואו ווי פארוואס וועלכע זיך ער זי עס מיר איר זיי איך דו האט האבן אבער אדער ביי נאר אויך
            זיין זייער יעדער",
    }
}

/// Stop words of scripts without spaces (Chinese, Japanese, Thai, Korean and others), in the form in which the
/// dictionary segmenter cuts them.
#[rustfmt::skip]
pub(super) const UNSPACED_STOP_WORDS: &str = "
    的 了 是 在 和 与 與 也 就 而 及 或 被 把 对 對 从 從 到 为 為 于 於 中 上 下 他 她 它 他们 他們 我 我们 我們
    你 您 这 這 那 这个 這個 那个 那個 哪 哪个 哪個 哪些 什么 什麼 谁 誰 何时 何時 哪里 哪裡 怎么 怎麼 怎样 怎樣 如何 为什么
    為什麼 多少 几 幾 吗 嗎 呢 有 没有 沒有 不 之 其 因为 因為 所以 但 但是 以及 以 并 並 等 着 個 个 请 請 一个 一個
    の は が を に へ と も で や か ね よ な だ です ます から まで より など この その あの どの これ それ あれ ここ そこ
    どこ だれ 誰 なに 何 なん いつ なぜ どう どの どのような どんな する した して される された こと もの ため いる いた
    ある あった れる られ られる られた という として について において による により によって でき できる ました ません
    および また または い う く し た て
    ที่ และ ของ ใน เป็น มี ได้ ให้ ว่า จะ ไม่ จาก กับ โดย การ ความ นี้ นั้น ก็ แต่ หรือ คือ อะไร ใคร เมื่อ เมื่อใด ที่ไหน
    ทำไม อย่างไร เท่าไร กี่ ใด ไหน แล้ว ซึ่ง อยู่ ต่อ ถึง เพื่อ ตาม ด้วย ไป มา เขา เธอ มัน พวก ผู้ ยัง ถูก
    무엇 누구 언제 어디 왜 어떻게 어떤 무슨 몇 이 그 저 것 수 및 등 있는 있다 하는 했다 한 된 은 는 을 를";
