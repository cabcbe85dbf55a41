BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0007');
CREATE TABLE alerts (
	"key" VARCHAR(200) NOT NULL, 
	code VARCHAR(64) NOT NULL, 
	text TEXT NOT NULL, 
	raised_at VARCHAR(32) NOT NULL, 
	seen_at VARCHAR(32) NOT NULL, 
	count INTEGER NOT NULL, 
	sent_at VARCHAR(32), 
	resolved_at VARCHAR(32), 
	PRIMARY KEY ("key")
);
INSERT INTO "alerts" VALUES('queue.foreign','queue.foreign','A message of another challenge lies in the queue.','2026-01-01T12:00:01.102000+00:00','2026-01-01T12:00:01.102000+00:00',1,NULL,NULL);
CREATE TABLE "attempts" (
	id INTEGER NOT NULL, 
	submission INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	worker VARCHAR(100) NOT NULL, 
	opened_at VARCHAR(32) NOT NULL, 
	closed_at VARCHAR(32), 
	outcome VARCHAR(16), 
	reason TEXT, 
	peak_memory_bytes INTEGER, 
	record VARCHAR(64), 
	PRIMARY KEY (id), 
	FOREIGN KEY(submission) REFERENCES submissions (pk)
);
INSERT INTO "attempts" VALUES(1,1001,'fetch','play','2026-01-01T12:00:00.004000+00:00','2026-01-01T12:00:00.022000+00:00','done','',NULL,NULL);
INSERT INTO "attempts" VALUES(2,1002,'fetch','play','2026-01-01T12:00:00.023000+00:00','2026-01-01T12:00:00.027000+00:00','done','',NULL,NULL);
INSERT INTO "attempts" VALUES(3,1001,'evaluate','play','2026-01-01T12:00:00.024000+00:00','2026-01-01T12:00:00.048000+00:00','done','',179220480,'aa');
INSERT INTO "attempts" VALUES(4,1003,'fetch','play','2026-01-01T12:00:00.028000+00:00','2026-01-01T12:00:00.032000+00:00','done','',NULL,NULL);
INSERT INTO "attempts" VALUES(5,1002,'evaluate','play','2026-01-01T12:00:00.051000+00:00','2026-01-01T12:00:00.060000+00:00','participant','file.invalid: The file has 3 kinds of faults. (1) The number of embedding columns is wrong: found 1, expected 8, named 0 to 7. Number the columns from 0. (2) 7 numbered columns are missing: column 1; column 2; column 3; and so on. Add them. (3) 60 ids of the public list are missing: "img_000"; "img_001"; "img_002"; and so on (not in the list, but in the file: "nonsense"). Add a row for every public id.',47112192,'aa');
INSERT INTO "attempts" VALUES(6,1003,'evaluate','play','2026-01-01T12:00:00.064000+00:00','2026-01-01T12:00:00.084000+00:00','done','',179171328,'aa');
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at VARCHAR(32) NOT NULL, 
	actor VARCHAR(100) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	submission INTEGER, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE batches (
	sequence INTEGER NOT NULL, 
	line TEXT NOT NULL, fillers VARCHAR(64), 
	PRIMARY KEY (sequence)
);
CREATE TABLE boards (
	phase VARCHAR(100) NOT NULL, 
	sequence INTEGER NOT NULL, 
	made_at VARCHAR(32) NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (phase, sequence)
);
INSERT INTO "boards" VALUES('dev',1,'2026-01-01T12:00:00.050000+00:00','{"made_at":"2026-01-01T12:00:00.050000+00:00","phase":"dev","private":{"fingerprint":"653723a718e55aaf6989d48798d97ffa137771b9b55945f630fe5a5ce7995497","leave_one_out":[],"replicates":2000,"rows":[{"borda":0.0,"iqm":1.0274718023666163,"mean_rank":1.0,"method":"","p_first":1.0,"p_top3":1.0,"q":{"alpha":-2.692883200195602,"beta":8.724520484463303,"gamma":-2.9492218771678527},"q_interval":[-0.918072,227.48661],"rank_by":{"borda":1,"iqm":1,"mean_rank":1},"rank_interval":[1,1],"submission":1001,"swap_with_next":null,"task_ranks":{"alpha":1,"beta":1,"gamma":1},"team_key":202,"weighted_rank":1.0}],"schema":1,"tasks":["alpha","beta","gamma"],"tau":{"borda":null,"iqm":null,"mean_rank":null},"weights":{"alpha":0.3333333333333333,"beta":0.3333333333333333,"gamma":0.3333333333333333}},"schema":1,"sequence":1,"standings":[{"baseline":false,"eligible":true,"group":1,"last_submitted_at":"2026-01-01T12:00:00+00:00","method":"","move":0,"move_kind":"new","q_mean":1.0274718023666163,"rank":1,"rank_by_mean":1,"submission":1001,"submissions":1,"team":"A","team_key":202}],"triggers":[1001]}');
INSERT INTO "boards" VALUES('eval',1,'2026-01-01T12:00:00.086000+00:00','{"made_at":"2026-01-01T12:00:00.086000+00:00","phase":"eval","private":{"fingerprint":"18fd2680f86a9817c796808c9b6a870441dba951710dfb3002356837f0274c8e","leave_one_out":[],"replicates":2000,"rows":[{"borda":0.0,"iqm":-1.0253550160062512,"mean_rank":1.0,"method":"","p_first":1.0,"p_top3":1.0,"q":{"alpha":-5.0940596882298035,"beta":3.043349656217301},"q_interval":[-12.566292,194.942732],"rank_by":{"borda":1,"iqm":1,"mean_rank":1},"rank_interval":[1,1],"submission":1003,"swap_with_next":null,"task_ranks":{"alpha":1,"beta":1},"team_key":204,"weighted_rank":1.0}],"schema":1,"tasks":["alpha","beta"],"tau":{"borda":null,"iqm":null,"mean_rank":null},"weights":{"alpha":0.5,"beta":0.5}},"schema":1,"sequence":1,"standings":[{"baseline":false,"eligible":true,"group":1,"last_submitted_at":"2026-01-01T12:00:00+00:00","method":"","move":0,"move_kind":"new","q_mean":-1.0253550160062512,"rank":1,"rank_by_mean":1,"submission":1003,"submissions":1,"team":"C","team_key":204}],"triggers":[1003]}');
CREATE TABLE cells (
	content_hash VARCHAR(64) NOT NULL, 
	task VARCHAR(200) NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	protocol_hash VARCHAR(64) NOT NULL, 
	phase VARCHAR(100) NOT NULL, 
	type VARCHAR(8) NOT NULL, 
	row_set VARCHAR(64) NOT NULL, 
	folds TEXT NOT NULL, 
	mean FLOAT, 
	std FLOAT, 
	q FLOAT, 
	failed_folds INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	scored_at VARCHAR(32) NOT NULL, 
	provenance TEXT NOT NULL, 
	PRIMARY KEY (content_hash, task, version, protocol_hash)
);
INSERT INTO "cells" VALUES('1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac','alpha','ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b','8e841406dc27d44b271f41302d7ce9e032b1ad6e7fe0c0b49362fcfdddc6ff70','dev','regr','c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa','[-5.213418232883164, -1.3484718004908336, -16.37561961125315, -6.933901093233928]',-7.46785268446526906416e+00,5.52636211769068186328e+00,-2.69288320019560201146e+00,0,2.58566995003093325067e-02,'2026-01-01T12:00:00.048000+00:00','{"machine": {"architecture": "x86_64", "cores": "2", "processor": "AMD EPYC", "system": "Linux"}, "peak_memory_bytes": 179220480, "remarks": [], "seconds": 0.9740739959997882, "versions": {"engine": "local", "llvmlite": "0.50.0", "neuco-worker": "0.1.0", "numba": "0.68.1", "numpy": "2.4.6", "python": "3.11.7"}, "worker": "play"}');
INSERT INTO "cells" VALUES('1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac','beta','493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f','8e841406dc27d44b271f41302d7ce9e032b1ad6e7fe0c0b49362fcfdddc6ff70','dev','cls','c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa','[0.75, 0.8888888888888888, 0.5, 0.6666666666666666]',7.01388888888888839545e-01,1.40785659254953426922e-01,8.72452048446330330477e+00,0,2.58566995003093325067e-02,'2026-01-01T12:00:00.048000+00:00','{"machine": {"architecture": "x86_64", "cores": "2", "processor": "AMD EPYC", "system": "Linux"}, "peak_memory_bytes": 179220480, "remarks": [], "seconds": 0.9740739959997882, "versions": {"engine": "local", "llvmlite": "0.50.0", "neuco-worker": "0.1.0", "numba": "0.68.1", "numpy": "2.4.6", "python": "3.11.7"}, "worker": "play"}');
INSERT INTO "cells" VALUES('1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac','gamma','400adda188427a3e279bc70ab172cbac95d13989062c3d66182d858ff2c77b16','8e841406dc27d44b271f41302d7ce9e032b1ad6e7fe0c0b49362fcfdddc6ff70','dev','regr','64915c5321fa3b467bb5391c3d2e6d9a458a404754fb978526fa38e771d5e500','[-6.091160870998893, -8.132578284113617, -27.35881836700105, -9.016185075293748]',-1.26496856493518272657e+01,8.55832077490172515865e+00,-2.94922187716785266786e+00,0,1.05514400001993635669e-03,'2026-01-01T12:00:00.048000+00:00','{"machine": {"architecture": "x86_64", "cores": "2", "processor": "AMD EPYC", "system": "Linux"}, "peak_memory_bytes": 179220480, "remarks": [], "seconds": 0.9740739959997882, "versions": {"engine": "local", "llvmlite": "0.50.0", "neuco-worker": "0.1.0", "numba": "0.68.1", "numpy": "2.4.6", "python": "3.11.7"}, "worker": "play"}');
INSERT INTO "cells" VALUES('1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac','alpha','ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b','79600dacbb64f258fa784c84a7fa6cb8f30b87da71858dafe15894b283564293','eval','regr','c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa','[-7.714357264914481, -12.798805216078405, -3.7116491413214145, -10.530143355192036]',-8.68873874437658422209e+00,3.39132192245510966088e+00,-5.0940596882298034842e+00,0,2.07025290001183748245e-02,'2026-01-01T12:00:00.084000+00:00','{"machine": {"architecture": "x86_64", "cores": "2", "processor": "AMD EPYC", "system": "Linux"}, "peak_memory_bytes": 179195904, "remarks": [], "seconds": 1.231820962000711, "versions": {"engine": "local", "llvmlite": "0.50.0", "neuco-worker": "0.1.0", "numba": "0.68.1", "numpy": "2.4.6", "python": "3.11.7"}, "worker": "play"}');
INSERT INTO "cells" VALUES('1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac','beta','493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f','79600dacbb64f258fa784c84a7fa6cb8f30b87da71858dafe15894b283564293','eval','cls','c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa','[0.0, 0.6666666666666666, 0.8, 0.5]',4.91666666666666696272e-01,3.03108891324553542112e-01,3.04334965621730102469e+00,0,2.07025290001183748245e-02,'2026-01-01T12:00:00.084000+00:00','{"machine": {"architecture": "x86_64", "cores": "2", "processor": "AMD EPYC", "system": "Linux"}, "peak_memory_bytes": 179195904, "remarks": [], "seconds": 1.231820962000711, "versions": {"engine": "local", "llvmlite": "0.50.0", "neuco-worker": "0.1.0", "numba": "0.68.1", "numpy": "2.4.6", "python": "3.11.7"}, "worker": "play"}');
CREATE TABLE choices (
	phase VARCHAR(100) NOT NULL, 
	team_key INTEGER NOT NULL, 
	submission INTEGER NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (phase, team_key)
);
INSERT INTO "choices" VALUES('dev',1,1,'asked before the deadline');
CREATE TABLE commitments (
	sequence INTEGER NOT NULL, 
	public TEXT NOT NULL, 
	private TEXT NOT NULL, 
	PRIMARY KEY (sequence)
);
INSERT INTO "commitments" VALUES(1,'{"format": 1, "sequence": 1, "made_at": "2026-01-01T12:00:00+00:00", "reason": "the challenge begins", "commitment": "725d937502060ba7e832ed5cc77bbd42fe8d2eeed1aa8c5a09d01e1b36266e9b", "beacon": null, "phases": {"dev": {"phase": "dev", "folds": 4, "embedding_dim": 8, "ids_hash": "c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa", "recipe": {"probe": "linear", "epochs": 2, "batch_size": 64, "learning_rate": 0.05, "test_size": 0.1, "standardize_embeddings": true, "normalize_labels": true, "epsilon": 0.02, "max_failed_folds": 3}, "derivation": 1}, "eval": {"phase": "eval", "folds": 4, "embedding_dim": 8, "ids_hash": "c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa", "recipe": {"probe": "linear", "epochs": 2, "batch_size": 64, "learning_rate": 0.05, "test_size": 0.1, "standardize_embeddings": true, "normalize_labels": true, "epsilon": 0.02, "max_failed_folds": 3}, "derivation": 1}}, "software": "neuco-worker 0.1.0"}','{"opening": {"nonce": "a5290ee74878e85281b438e654dbddaaa04f1c19adf592da9a770ad63cd084e9", "secret": "3c07bc2de4cee32d4cc9543989c0b166f3f4af1eb0558025078f31a7a6778826", "phases": {"dev": "1618f6725509b4e67c039c09bc0eb2cdd91abd6cd4f936a2be73bfa4d1bfc2fb", "eval": "8ef9e4ec330ccf5b6850eae80df310b62c32303e1920b308e70b22951bb7affe"}}, "manifests": {"dev": {"phase": "dev", "nonce": "512e7a96f50bb923dc66ca0b98ac1db531fb189cc17cf5f0fd4fdaf6039caec4", "protocol": {"phase": "dev", "folds": 4, "embedding_dim": 8, "ids_hash": "c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa", "secret_commitment": "1696e15e07167a202dbf9aa29be808a72f54093c247025159e35072e77ce7932", "recipe": {"probe": "linear", "epochs": 2, "batch_size": 64, "learning_rate": 0.05, "test_size": 0.1, "standardize_embeddings": true, "normalize_labels": true, "epsilon": 0.02, "max_failed_folds": 3}, "derivation": 1}, "protocol_hash": "8e841406dc27d44b271f41302d7ce9e032b1ad6e7fe0c0b49362fcfdddc6ff70", "tasks": [{"identifier": "alpha", "type": "regr", "version": "ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b", "salt": "6eb6e8738fce522990e99458c30f216605e1da97f3cdc4c52926c5eb6dd025df", "labels": "8bfc39165ab4b427b4ef667f942ae7b265609a68ca29680d50f58c278e5ce1ca"}, {"identifier": "beta", "type": "cls", "version": "493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f", "salt": "114db6bdc5f172fbe2860395cdbe57b2263ad5e65b7df18ff88ec98a89ced69b", "labels": "c389d0578ac6264f8e8b45757e067696724df0a9e1243286ea6461d9ee1d9290"}, {"identifier": "gamma", "type": "regr", "version": "400adda188427a3e279bc70ab172cbac95d13989062c3d66182d858ff2c77b16", "salt": "14aa96c583ccbd59adb3e723c0de523e6c3ca46f296a3addb29fc252a9459399", "labels": "2e9b55d3ead248d9735c75cf34770d4edd9973cd7556f681b4598d544f055265"}]}, "eval": {"phase": "eval", "nonce": "02022c7a77a5d0b5f3c5f98a7ae7b29cda7dbe8fdbc6d45ab6b7c91ca4da81f5", "protocol": {"phase": "eval", "folds": 4, "embedding_dim": 8, "ids_hash": "c29f4c7f20ace83339743fdf1ca869a9c3b7514b1f1c81676844637d065b6daa", "secret_commitment": "ee883292e93ec05538e1e567eed5612bac438064525bcddc76dbb5526b2a2fc7", "recipe": {"probe": "linear", "epochs": 2, "batch_size": 64, "learning_rate": 0.05, "test_size": 0.1, "standardize_embeddings": true, "normalize_labels": true, "epsilon": 0.02, "max_failed_folds": 3}, "derivation": 1}, "protocol_hash": "79600dacbb64f258fa784c84a7fa6cb8f30b87da71858dafe15894b283564293", "tasks": [{"identifier": "alpha", "type": "regr", "version": "ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b", "salt": "443e9517528737557096fa441b57b17adfe045f45e41a580d368061a461a8fc7", "labels": "b58e5659d8608fc084eb20d3fae173827443129622e022d3522173789a8992d1"}, {"identifier": "beta", "type": "cls", "version": "493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f", "salt": "742bcdb2477024bec36786d73884e33869e1688f388c63576d0209f0b889e7c6", "labels": "2a20a7ea37b2402b9ad5d81c7491dd1c09ba49935ea4cdbfa62ee82d437aa78c"}]}}}');
CREATE TABLE events (
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	subject VARCHAR(120) NOT NULL, 
	phase VARCHAR(100), 
	facts VARCHAR(64) NOT NULL, 
	fields TEXT NOT NULL, 
	nonce VARCHAR(64) NOT NULL, 
	commitment VARCHAR(64) NOT NULL, 
	batch INTEGER, 
	PRIMARY KEY (id), 
	UNIQUE (commitment)
);
INSERT INTO "events" VALUES(1,'submission','submission 1001','dev','abababababababababababababababababababababababababababababababab','{"at": "2026-01-01T12:00:00.050000+00:00", "entry": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f", "kind": "submission", "phase": "dev", "team": "A"}','cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd','efefefefefefefefefefefefefefefefefefefefefefefefefefefefefefefef',NULL);
CREATE TABLE facts (
	name VARCHAR(100) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "facts" VALUES('started_at','2026-01-01T12:00:00+00:00');
INSERT INTO "facts" VALUES('reconciled_at','2026-01-01T12:00:00.004000+00:00');
INSERT INTO "facts" VALUES('pushed_at','2026-01-01T12:00:00.092000+00:00');
INSERT INTO "facts" VALUES('pushed_commit','a9aa808a805dbcde9b410d9e68caad9b55e6ca1e');
INSERT INTO "facts" VALUES('polled_at','2026-01-01T12:00:01.101000+00:00');
CREATE TABLE outbox (
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	submission INTEGER NOT NULL, 
	receipt TEXT, 
	created_at VARCHAR(32) NOT NULL, 
	not_before VARCHAR(32) NOT NULL, 
	tries INTEGER NOT NULL, 
	sent_at VARCHAR(32), 
	done_at VARCHAR(32), 
	last_error TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(submission) REFERENCES submissions (pk)
);
INSERT INTO "outbox" VALUES(1,'delete',1001,'57c3ab1a1e0f5ddeba9dab04aabc11335eeea58620760b653e77b2b2e46be97557c3ab1a1e0f5ddeba9dab04aabc11335eeea58620760b653e77b2b2e46be975','2026-01-01T12:00:00.006000+00:00','2026-01-01T12:00:00.006000+00:00',0,NULL,'2026-01-01T12:00:00.008000+00:00',NULL);
INSERT INTO "outbox" VALUES(2,'delete',1002,'48f4d0dc0911f531496b3196d39b03cd18241bbc2f54beac110c69dd2814eee348f4d0dc0911f531496b3196d39b03cd18241bbc2f54beac110c69dd2814eee3','2026-01-01T12:00:00.010000+00:00','2026-01-01T12:00:00.010000+00:00',0,NULL,'2026-01-01T12:00:00.012000+00:00',NULL);
INSERT INTO "outbox" VALUES(3,'delete',1003,'a7f72a5ec1f5bacf2f86e5c7963131e01ef0e64cf4c183b647c05c7a6878048ea7f72a5ec1f5bacf2f86e5c7963131e01ef0e64cf4c183b647c05c7a6878048e','2026-01-01T12:00:00.014000+00:00','2026-01-01T12:00:00.014000+00:00',0,NULL,'2026-01-01T12:00:00.016000+00:00',NULL);
INSERT INTO "outbox" VALUES(4,'post',1001,NULL,'2026-01-01T12:00:00.048000+00:00','2026-01-01T12:00:00.048000+00:00',0,'2026-01-01T12:00:00.048000+00:00','2026-01-01T12:00:00.050000+00:00',NULL);
INSERT INTO "outbox" VALUES(5,'post',1002,NULL,'2026-01-01T12:00:00.060000+00:00','2026-01-01T12:00:00.060000+00:00',0,'2026-01-01T12:00:00.060000+00:00','2026-01-01T12:00:00.062000+00:00',NULL);
INSERT INTO "outbox" VALUES(6,'post',1003,NULL,'2026-01-01T12:00:00.084000+00:00','2026-01-01T12:00:00.084000+00:00',0,'2026-01-01T12:00:00.084000+00:00','2026-01-01T12:00:00.086000+00:00',NULL);
CREATE TABLE phases (
	phase VARCHAR(100) NOT NULL, 
	protocol_hash VARCHAR(64) NOT NULL, 
	tasks TEXT NOT NULL, 
	frozen_at VARCHAR(32), record VARCHAR(64), 
	PRIMARY KEY (phase)
);
INSERT INTO "phases" VALUES('dev','8e841406dc27d44b271f41302d7ce9e032b1ad6e7fe0c0b49362fcfdddc6ff70','{"alpha": "ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b", "beta": "493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f", "gamma": "400adda188427a3e279bc70ab172cbac95d13989062c3d66182d858ff2c77b16"}',NULL,'aa');
INSERT INTO "phases" VALUES('eval','79600dacbb64f258fa784c84a7fa6cb8f30b87da71858dafe15894b283564293','{"alpha": "ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b", "beta": "493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f"}',NULL,'aa');
CREATE TABLE receipts (
	id INTEGER NOT NULL, 
	submission INTEGER NOT NULL, 
	commitment VARCHAR(64) NOT NULL, 
	nonce VARCHAR(64) NOT NULL, 
	record TEXT NOT NULL, 
	batch INTEGER, 
	PRIMARY KEY (id), 
	UNIQUE (commitment)
);
INSERT INTO "receipts" VALUES(1,1001,'1becfd0262f3a643a87a96028ea3665492c411a2d234f1bf46641cdb5f54d7d4','0c1da9a9108493492f7e89806b91646d92e0bc03c09e166eb2015e9394662c3b','{"submission": 1001, "phase": "dev", "content_hash": "1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac", "protocol_hash": "8e841406dc27d44b271f41302d7ce9e032b1ad6e7fe0c0b49362fcfdddc6ff70", "scored_at": "2026-01-01T12:00:00.048000+00:00", "cells": {"alpha": {"version": "ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b", "folds": [-5.213418232883164, -1.3484718004908336, -16.37561961125315, -6.933901093233928]}, "beta": {"version": "493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f", "folds": [0.75, 0.8888888888888888, 0.5, 0.6666666666666666]}, "gamma": {"version": "400adda188427a3e279bc70ab172cbac95d13989062c3d66182d858ff2c77b16", "folds": [-6.091160870998893, -8.132578284113617, -27.35881836700105, -9.016185075293748]}}}',NULL);
INSERT INTO "receipts" VALUES(2,1003,'45eb8839423792f3ef3a41104d051f6f3c98a2cb06f6c9d5b288c16461aa52b5','92ae99e236ed2f395c3048e492bbb07a4b6145792008beb99202c345dece6cef','{"submission": 1003, "phase": "eval", "content_hash": "1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac", "protocol_hash": "79600dacbb64f258fa784c84a7fa6cb8f30b87da71858dafe15894b283564293", "scored_at": "2026-01-01T12:00:00.084000+00:00", "cells": {"alpha": {"version": "ad46bbb047a4ca9e452154c3da26022bbffb985480927fe2a0623d38a233746b", "folds": [-7.714357264914481, -12.798805216078405, -3.7116491413214145, -10.530143355192036]}, "beta": {"version": "493c88d791716a5348753b4e871a72688a78a29a25a35b844aa5f5fa8e3a179f", "folds": [0.0, 0.6666666666666666, 0.8, 0.5]}}}',NULL);
CREATE TABLE records (
	hash VARCHAR(64) NOT NULL, 
	document BLOB NOT NULL, 
	files VARCHAR(64), 
	recorded_at VARCHAR(32) NOT NULL, 
	PRIMARY KEY (hash)
);
INSERT INTO "records" VALUES('aa',X'1F8B','bb','2026-01-01T12:00:01.102000+00:00');
CREATE TABLE reveals (
	phase VARCHAR(100) NOT NULL, 
	files TEXT NOT NULL, 
	PRIMARY KEY (phase)
);
CREATE TABLE submissions (
	pk INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	first_seen_at VARCHAR(32) NOT NULL, 
	message_phase INTEGER, 
	phase_pk INTEGER, 
	phase VARCHAR(100), 
	team_key INTEGER, 
	submitted_at VARCHAR(32), 
	input_file TEXT, 
	public_at_first BOOLEAN, 
	team TEXT, 
	method TEXT, 
	public_now BOOLEAN, 
	baseline BOOLEAN NOT NULL, 
	flagged BOOLEAN NOT NULL, 
	deleted BOOLEAN NOT NULL, 
	remote_status VARCHAR(24), 
	read_at VARCHAR(32), 
	not_before VARCHAR(32), 
	tries INTEGER NOT NULL, 
	hold VARCHAR(64), 
	hold_reason TEXT, 
	running_at VARCHAR(32), 
	file_hash VARCHAR(64), 
	file_bytes INTEGER, 
	content_hash VARCHAR(64), 
	q_mean FLOAT, 
	answer TEXT, 
	posted TEXT, 
	reposts INTEGER NOT NULL, 
	scored_at VARCHAR(32), 
	answered_at VARCHAR(32), 
	superseded_by INTEGER, 
	excluded TEXT, 
	calls INTEGER NOT NULL, created_by INTEGER, by_host BOOLEAN, project_url TEXT, publication_url TEXT, 
	PRIMARY KEY (pk)
);
INSERT INTO "submissions" VALUES(1001,'published','2026-01-01T12:00:00.004000+00:00',11,11,'dev',202,'2026-01-01T12:00:00.000000+00:00','http://127.0.0.1:34433/media/submission_files/challenge_7/phase_11/submission_1001/ec423432-bdea-409b-aab6-adeb59a839c8.csv',1,'A','a method',1,0,0,0,'finished','2026-01-01T12:00:00.050000+00:00',NULL,0,NULL,NULL,'2026-01-01T12:00:00.024000+00:00','d7f3f213a36f8996d56138eaf5459ee915256f7cca508ea0a5129085389950d2',4452,'1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac',1.02747180236661628249e+00,'{"status": "finished", "stderr": "", "stdout": "{\"status\": \"completed\", \"q_mean\": 1.027, \"more_than_allowed_probes_failed\": false, \"zarr_suffix_removed\": false, \"notes\": [], \"receipt\": {\"nonce\": \"0c1da9a9108493492f7e89806b91646d92e0bc03c09e166eb2015e9394662c3b\", \"commitment\": \"1becfd0262f3a643a87a96028ea3665492c411a2d234f1bf46641cdb5f54d7d4\", \"challenge\": \"725d937502060ba7e832ed5cc77bbd42fe8d2eeed1aa8c5a09d01e1b36266e9b\", \"chain\": \"0000000000000000000000000000000000000000000000000000000000000000\"}}", "value": 1.027}','{"status": "finished", "stderr": "", "stdout": "{\"status\": \"completed\", \"q_mean\": 1.027, \"more_than_allowed_probes_failed\": false, \"zarr_suffix_removed\": false, \"notes\": [], \"receipt\": {\"nonce\": \"0c1da9a9108493492f7e89806b91646d92e0bc03c09e166eb2015e9394662c3b\", \"commitment\": \"1becfd0262f3a643a87a96028ea3665492c411a2d234f1bf46641cdb5f54d7d4\", \"challenge\": \"725d937502060ba7e832ed5cc77bbd42fe8d2eeed1aa8c5a09d01e1b36266e9b\", \"chain\": \"0000000000000000000000000000000000000000000000000000000000000000\"}}", "value": 1.027}',0,'2026-01-01T12:00:00.048000+00:00','2026-01-01T12:00:00.050000+00:00',NULL,NULL,3,501,0,'https://github.com/a/a','https://arxiv.org/abs/1');
INSERT INTO "submissions" VALUES(1002,'failed','2026-01-01T12:00:00.004000+00:00',11,11,'dev',203,'2026-01-01T12:00:00.000000+00:00','http://127.0.0.1:34433/media/submission_files/challenge_7/phase_11/submission_1002/eb1cb86c-fec8-451c-9189-1e6a2a14300a.csv',1,'B','a method',1,0,0,0,'failed','2026-01-01T12:00:00.062000+00:00',NULL,0,NULL,NULL,'2026-01-01T12:00:00.051000+00:00','13a2a1a8f335c4b4ac5e130680d40d9c63fc973bc08d83c98e6b4f3e47af4a0d',16,NULL,NULL,'{"status": "failed", "stderr": "The file has 3 kinds of faults. (1) The number of embedding columns is wrong: found 1, expected 8, named 0 to 7. Number the columns from 0. (2) 7 numbered columns are missing: column 1; column 2; column 3; and so on. Add them. (3) 60 ids of the public list are missing: \"img_000\"; \"img_001\"; \"img_002\"; and so on (not in the list, but in the file: \"nonsense\"). Add a row for every public id.", "stdout": "", "value": null}','{"status": "failed", "stderr": "The file has 3 kinds of faults. (1) The number of embedding columns is wrong: found 1, expected 8, named 0 to 7. Number the columns from 0. (2) 7 numbered columns are missing: column 1; column 2; column 3; and so on. Add them. (3) 60 ids of the public list are missing: \"img_000\"; \"img_001\"; \"img_002\"; and so on (not in the list, but in the file: \"nonsense\"). Add a row for every public id.", "stdout": "", "value": null}',0,NULL,'2026-01-01T12:00:00.062000+00:00',NULL,NULL,3,502,0,NULL,NULL);
INSERT INTO "submissions" VALUES(1003,'published','2026-01-01T12:00:00.004000+00:00',12,12,'eval',204,'2026-01-01T12:00:00.000000+00:00','http://127.0.0.1:34433/media/submission_files/challenge_7/phase_12/submission_1003/96c23802-6744-4ed7-be9b-a80e87058d11.csv',1,'C','a method',1,0,0,0,'finished','2026-01-01T12:00:00.086000+00:00',NULL,0,NULL,NULL,'2026-01-01T12:00:00.064000+00:00','d7f3f213a36f8996d56138eaf5459ee915256f7cca508ea0a5129085389950d2',4452,'1c9c186668acbe53fc15af517514c5c283c4e1117d566a124109f916ba6ff4ac',-1.02535501600625122975e+00,'{"status": "finished", "stderr": "", "stdout": "{\"status\": \"completed\", \"q_mean\": -1.025, \"more_than_allowed_probes_failed\": false, \"zarr_suffix_removed\": false, \"notes\": [], \"receipt\": {\"nonce\": \"92ae99e236ed2f395c3048e492bbb07a4b6145792008beb99202c345dece6cef\", \"commitment\": \"45eb8839423792f3ef3a41104d051f6f3c98a2cb06f6c9d5b288c16461aa52b5\", \"challenge\": \"725d937502060ba7e832ed5cc77bbd42fe8d2eeed1aa8c5a09d01e1b36266e9b\", \"chain\": \"0000000000000000000000000000000000000000000000000000000000000000\"}}", "value": -1.025}','{"status": "finished", "stderr": "", "stdout": "{\"status\": \"completed\", \"q_mean\": -1.025, \"more_than_allowed_probes_failed\": false, \"zarr_suffix_removed\": false, \"notes\": [], \"receipt\": {\"nonce\": \"92ae99e236ed2f395c3048e492bbb07a4b6145792008beb99202c345dece6cef\", \"commitment\": \"45eb8839423792f3ef3a41104d051f6f3c98a2cb06f6c9d5b288c16461aa52b5\", \"challenge\": \"725d937502060ba7e832ed5cc77bbd42fe8d2eeed1aa8c5a09d01e1b36266e9b\", \"chain\": \"0000000000000000000000000000000000000000000000000000000000000000\"}}", "value": -1.025}',0,'2026-01-01T12:00:00.084000+00:00','2026-01-01T12:00:00.086000+00:00',NULL,NULL,3,NULL,NULL,NULL,NULL);
CREATE INDEX ix_submissions_content_hash ON submissions (content_hash);
CREATE INDEX ix_submissions_state ON submissions (state);
CREATE INDEX ix_receipts_submission ON receipts (submission);
CREATE INDEX outbox_due ON outbox (done_at, not_before);
CREATE INDEX ix_submissions_by_host ON submissions (by_host);
CREATE INDEX ix_attempts_submission ON attempts (submission);
CREATE INDEX ix_events_phase ON events (phase);
CREATE INDEX events_latest ON events (kind, subject);
COMMIT;
